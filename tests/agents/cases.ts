import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { type NodeSpec, type RunEvent, type RunReport, resumeRun } from "../../src/harness.js";
import { startApart } from "./apart.js";
import type { Turn } from "./model-server.js";
import { type Stage, say } from "./stage.js";
import { PATIENT, type Subject, USED } from "./subjects.js";

/** One row of the table. It fails by an expectation. */
export interface Case {
  readonly name: string;
  run(stage: Stage): Promise<void>;
}

const FIX = "sed -i 's/a - b/a + b/' sum.mjs";
/** Lets those that obey it try again at once. */
const SOON = { "retry-after-ms": "10" };

/** A text that comes in many pieces, and does not look like a loop. */
const LONG = Array.from({ length: 80 }, (_, n) => `word${(n * 7919) % 1000}`).join(" ");

/** What each status has to become. */
const FAILURES: Readonly<Record<number, "unauthenticated" | "rate_limit" | "network">> = {
  401: "unauthenticated",
  403: "unauthenticated",
  429: "rate_limit",
  500: "network",
  529: "rate_limit",
};

/** The rows, the slowest first: several are run at once. */
export const CASES: readonly Case[] = [
  { name: "meets a stream that is cut again and again", run: meetsCutStream },
  { name: "resumes after kill -9", run: resumesAfterKill },
  { name: "is ended when its model falls silent", run: endsWhenSilent },
  { name: "is ended at its time", run: endsAtItsTime },
  { name: "is run again by the harness after a failure that may pass", run: isRunAgain },
  ...Object.keys(FAILURES).map((status) => ({
    name: `meets ${status}`,
    run: (stage: Stage) => meetsStatus(stage, Number(status)),
  })),
  { name: "gets over one overloaded answer by itself, and runs once", run: getsOverOne },
  { name: "continues its session, and is counted once", run: continuesSession },
  { name: "is stopped at its turns", run: stopsAtTurns },
  { name: "is stopped at its cost, or refuses the limit", run: stopsAtCost },
  { name: "edits a file by a tool call", run: editsFile },
  { name: "repairs a failing test through a gate", run: repairsTest },
  { name: "is interrupted", run: isInterrupted },
  { name: "fails for nothing that its model or a tool merely mentions", run: ignoresProse },
  { name: "fails by its cause, whatever its model and a tool mention", run: failsByItsCause },
];

async function editsFile(stage: Stage): Promise<void> {
  const { subject } = stage;
  stage.play([subject.shell("echo edited > made.txt"), say("it is made")]);
  const report = await stage.run([stage.node("work")]);
  expect(report.error).toBeUndefined();
  expect(report.status).toBe("success");
  expect(report.changes?.files).toEqual([{ path: "made.txt", status: "added" }]);
  expect(report.nodes[0]).toMatchObject({ output: "it is made", agent: { turns: 2, name: subject.task.agent } });
  expect(report.nodes[0]?.agent?.usage).toEqual(usage(subject, { turns: 2, times: 2 }));
  expect(report.cost.usd).toEqual(usd(subject, 2));
  // The key is where the service wants it, in every request.
  expect(stage.asked.map(({ auth }) => auth)).toEqual([subject.auth, subject.auth]);
  expect(warningsOf(report, subject)).toEqual([]);
  const events = stage.bench.harness.events(stage.runId);
  const calls = only(events, "agent.tool_call");
  expect(calls).toHaveLength(1);
  if (subject.namesLate !== true) expect(JSON.stringify(calls)).toContain("echo edited > made.txt");
  expect(only(events, "agent.tool_result")).toMatchObject([{ isError: false }]);
}

async function repairsTest(stage: Stage): Promise<void> {
  const { subject } = stage;
  stage.play([subject.shell(FIX), say("repaired")]);
  const gate = {
    id: "green",
    kind: "gate",
    checks: [{ id: "test", run: ["node", "test.mjs"] }],
    onFail: { ...subject.task, prompt: "repair it" },
  } as unknown as NodeSpec;
  const report = await stage.run([gate]);
  expect(report.error).toBeUndefined();
  expect(report.nodes).toMatchObject([{ status: "success", rounds: 1, children: [{ status: "success" }] }]);
  expect(report.changes?.files).toEqual([{ path: "sum.mjs", status: "modified" }]);
}

/** The second node uses more than the first, the third less: no way to count may depend on that. */
async function continuesSession(stage: Stage): Promise<void> {
  const { subject } = stage;
  stage.play([say("first answer"), say("second answer", 2), say("third answer")]);
  const report = await stage.run([
    stage.node("one"),
    ...settled(subject, stage.node("two", { continue: "one" })),
    ...settled(subject, stage.node("three", { continue: "two" })),
  ]);
  expect(report.error).toBeUndefined();
  const texts = stage.asked.at(-1)?.texts ?? [];
  expect(texts).toEqual(expect.arrayContaining(["first answer", "second answer"]));
  const prompts = ["one", "two", "three"].map((id) => texts.findIndex((text) => text.includes(`the prompt of ${id}`)));
  expect(prompts.every((at, n) => at > (prompts[n - 1] ?? -1))).toBe(true);
  const said = { one: "first answer", two: "second answer", three: "third answer" };
  for (const [n, [id, output]] of Object.entries(said).entries()) {
    const times = id === "two" ? 2 : 1;
    const node = report.nodes.find((each) => each.id === id);
    const { agent } = node ?? {};
    expect(node?.output).toBe(output);
    expect([agent?.turns, agent?.usage]).toEqual([1, usage(subject, { times, isContinued: n > 0 })]);
    expect(agent?.costUsd).toEqual(usd(subject, times));
  }
  expect(report.cost.usd).toEqual(usd(subject, 4));
}

async function resumesAfterKill(stage: Stage): Promise<void> {
  const { subject, runId, options } = stage;
  let isAsked = (): void => undefined;
  const asked = new Promise<void>((resolve) => {
    isAsked = resolve;
  });
  stage.play((_request, at) => {
    if (at === 0) return say("first answer");
    isAsked();
    return { ...say("never heard"), stop: "hang" };
  });
  const nodes = [stage.node("one"), ...settled(subject, stage.node("two", { continue: "one" }))];
  // As the command line does: some agents find a session only where it was.
  const place = { keep: "never", preferredWorkDir: "/workspace" } as const;
  const wanted = { blueprint: { name: runId, nodes }, runId, ...place, ...options };
  const child = await startApart(stage.bench, stage.gateway, wanted);
  await Promise.race([asked, child.ended.then((output) => Promise.reject(new Error(`it ended: ${output}`)))]);
  child.kill();
  await child.ended;
  stage.play([say("second answer")]);
  const { env = {} } = stage.bench.sandbox;
  const report = await resumeRun({ runId, secretSource: subject.secrets, sandbox: { env } });
  expect(report.error).toBeUndefined();
  expect(report).toMatchObject({ status: "success", resumedFrom: "two" });
  const before = [expect.stringContaining("the prompt of one"), "first answer"];
  if (subject.savesSessions) {
    expect(warningsOf(report, subject)).toEqual([]);
    expect(stage.asked[0]?.texts).toEqual(expect.arrayContaining(before));
  } else {
    expect(warningsOf(report, subject)).toEqual(["two starts a new session: that of one was not saved"]);
    expect(stage.asked[0]?.texts).not.toEqual(expect.arrayContaining(before));
  }
  expect(report.nodes.at(-1)?.agent?.usage).toEqual(usage(subject, { isContinued: subject.savesSessions }));
  // The answer that was never heard has no price.
  expect(report.cost.usd).toEqual(usd(subject, 2));
}

async function stopsAtTurns(stage: Stage): Promise<void> {
  stage.play((_request, at) => stage.subject.shell(`echo ${at} >> made.txt`));
  const report = await stage.run([stage.node("work", { limits: { turns: 3 } })]);
  expect(report).toMatchObject({ status: "limit", exitCode: 5, limitsHit: [{ limit: "turns", allowed: 3 }] });
  expect(stage.asked.length).toBeLessThanOrEqual(5);
  expect(report.changes?.files).toEqual([{ path: "made.txt", status: "added" }]);
}

async function stopsAtCost(stage: Stage): Promise<void> {
  const { price, hasCostLimit } = stage.subject;
  stage.play((_request, at) => stage.subject.shell(`echo ${at} >> made.txt`));
  const limited = stage.run([stage.node("work", { limits: { costUsd: (price ?? 1) * 2.5 } })]);
  if (!hasCostLimit) {
    await expect(limited).rejects.toMatchObject({ code: "unsupported" });
    expect(stage.asked).toEqual([]);
    return;
  }
  expect(await limited).toMatchObject({ status: "limit", exitCode: 5, limitsHit: [{ limit: "cost" }] });
  expect(stage.asked.length).toBeLessThanOrEqual(4);
}

async function endsAtItsTime(stage: Stage): Promise<void> {
  stage.play(() => ({ text: "I think about it for a long time.", stop: "hang" }));
  const report = await stage.run([stage.node("work", { limits: { wall: 15_000 } })]);
  expect(report).toMatchObject({ status: "limit", exitCode: 5, limitsHit: [{ limit: "wall", allowed: 15_000 }] });
}

async function endsWhenSilent(stage: Stage): Promise<void> {
  stage.play(() => ({ text: LONG, stop: "hang" }));
  const report = await stage.run([stage.node("work", { limits: { idle: 15_000 } })]);
  expect(report).toMatchObject({ status: "limit", exitCode: 5, limitsHit: [{ limit: "idle", allowed: 15_000 }] });
}

async function isInterrupted(stage: Stage): Promise<void> {
  const stop = new AbortController();
  stage.play(() => {
    stop.abort();
    return { ...say("never heard"), stop: "hang" };
  });
  const report = await stage.run([stage.node("work")], { signal: stop.signal });
  expect(report).toMatchObject({ status: "cancelled", exitCode: 130, nodes: [{ status: "cancelled" }] });
}

async function meetsStatus(stage: Stage, status: number): Promise<void> {
  const code = stage.subject.failures?.[status] ?? FAILURES[status] ?? "";
  const isRetryable = ["network", "rate_limit"].includes(code);
  stage.play(() => ({ status, message: "trouble in the billing module", headers: SOON }));
  if (code === PATIENT) {
    const limited = await stage.run([stage.node("work", { limits: { idle: 15_000 } })]);
    expect(limited).toMatchObject({ status: "limit", limitsHit: [{ limit: "idle" }] });
    return;
  }
  // The harness tries again what may pass; that has a row of its own.
  const retry = isRetryable ? { max: 0 } : { max: 2, backoff: 10 };
  const report = await stage.run([stage.node("work", { retry })]);
  expect(report.nodes[0]).toMatchObject({ status: "failure", attempt: 1, agent: { failure: code }, error: { code } });
  expect(report.nodes[0]?.error?.retryable).toBe(isRetryable);
  expect(stage.asked.length).toBeGreaterThan(0);
}

/** The failure of an agent that may pass, and what it becomes. */
function fallOf(subject: Subject): { fail(): Turn; code: string } {
  switch (subject.fallsBy) {
    case "cut":
      return { fail: () => ({ text: LONG, stop: "cut" }), code: "network" };
    case "kill":
      // Its parent is the agent.
      return { fail: () => subject.shell("kill -9 $PPID"), code: "crash" };
    default:
      return { fail: () => ({ status: 500, headers: SOON }), code: "network" };
  }
}

async function isRunAgain(stage: Stage): Promise<void> {
  const { subject } = stage;
  let isDown = true;
  const { fail, code } = fallOf(subject);
  stage.play(() => (isDown ? fail() : say("late")));
  const event = ({ type }: RunEvent): void => {
    if (type === "retry.scheduled") isDown = false;
  };
  const retry = { max: 1, backoff: 10 };
  const report = await stage.run([stage.node("work", { retry })], { reporter: { event } });
  const attempts = [{ status: "failure", error: { code, retryable: true } }, { status: "success" }];
  expect(report.nodes[0]).toMatchObject({ status: "success", output: "late", attempt: 2, attempts });
  // The request that failed has no price, and the one that did not is billed once.
  if (subject.fallsBy === undefined) expect(report.cost.usd).toEqual(usd(subject, 1));
}

async function getsOverOne(stage: Stage): Promise<void> {
  stage.play([{ status: 529, headers: SOON }, say("it is done")]);
  const report = await stage.run([stage.node("work")]);
  expect(report.nodes[0]).toMatchObject({ status: "success", attempt: 1, output: "it is done" });
  expect(report.nodes[0]?.agent?.usage).toEqual(usage(stage.subject, {}));
  expect(report.cost.usd).toEqual(usd(stage.subject, 1));
}

async function meetsCutStream(stage: Stage): Promise<void> {
  const cut: Turn = { text: LONG, stop: "cut" };
  stage.play(() => cut);
  const [work] = (await stage.run([stage.node("work")])).nodes;
  if (stage.subject.cutStream === "takes what came") {
    expect(work).toMatchObject({ status: "success", output: expect.stringMatching(/^word0 /) as string });
  } else {
    const isKnown = stage.subject.cutStream === "fails";
    const error = { code: isKnown ? "network" : "agent_error", retryable: isKnown };
    expect(work).toMatchObject({ status: "failure", error });
  }
  expect(stage.asked.length).toBeGreaterThan(0);
}

/** What looks like the errors of services and of the agents themselves, and like their events. */
const MENTIONED = [
  'API Error: 401 {"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}',
  "ERROR: unexpected status 403 Forbidden: the billing module has no credit",
  "exceeded retry limit, last status: 401 Unauthorized",
  '401 {"error":{"type":"insufficient_quota","code":"insufficient_quota"}}',
  '{"type":"result","subtype":"success","is_error":true,"api_error_status":402,"result":"billing"}',
  '{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized"}}',
  '{"type":"session.error","data":{"errorType":"quota","statusCode":402}}',
];

/** A tool that mentions them on both streams and fails, and a model that says them. */
function mention({ shell }: Subject): Turn {
  const prints = `printf '%s\\n' ${MENTIONED.map((line) => `'${line}'`).join(" ")}`;
  return { ...shell(`${prints}; ${prints} >&2; exit 41`), text: MENTIONED.join("\n") };
}

async function ignoresProse(stage: Stage): Promise<void> {
  const said = `the billing module answers 401 to too many requests\n${MENTIONED.join("\n")}`;
  stage.play([mention(stage.subject), say(said)]);
  const report = await stage.run([stage.node("work")]);
  expect(report.nodes[0]).toMatchObject({ status: "success", attempt: 1, output: said });
  expect(report.nodes[0]?.agent?.failure).toBeUndefined();
  const file = join(stage.bench.harness.directoryOf(stage.runId), "report.json");
  expect(existsSync(file)).toBe(true);
  expect(readFileSync(file, "utf8")).not.toContain("key-for-the-test");
}

async function failsByItsCause(stage: Stage): Promise<void> {
  const { fail, code } = fallOf(stage.subject);
  stage.play((_request, at) => (at === 0 ? mention(stage.subject) : fail()));
  const [work] = (await stage.run([stage.node("work")])).nodes;
  expect(work).toMatchObject({ status: "failure", agent: { failure: code }, error: { code, retryable: true } });
}

function only(events: readonly RunEvent[], type: RunEvent["type"]): RunEvent[] {
  return events.filter((event) => event.type === type);
}

/** A node that continues a session, after what the agent needs to find it. */
function settled({ settles }: Subject, node: NodeSpec): NodeSpec[] {
  if (settles === undefined) return [node];
  return [{ id: `before-${node.id}`, kind: "command", shell: settles }, node];
}

/** What a report warns of, without the requests to hosts that the agent can do without. */
function warningsOf({ warnings }: RunReport, { asksElsewhere = false }: Subject): string[] {
  return warnings.filter((warning) => !(asksElsewhere && warning.startsWith("blocked ")));
}

/** The tokens that a node has to report. */
function usage(
  { tokens }: Subject,
  { turns = 1, times = 1, isContinued = false }: { turns?: number; times?: number; isContinued?: boolean },
): object | undefined {
  if (tokens === "never" || (tokens === "one turn" && (turns > 1 || isContinued))) return undefined;
  return { input: USED.input * times, output: USED.output * times, cacheRead: 0, cacheWrite: 0 };
}

function usd({ price }: Subject, times: number): unknown {
  return price === null ? null : expect.closeTo(price * times, 6);
}
