import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HarnessOptions, type NodeSpec, type RunReport, resumeRun } from "../../src/harness.js";
import { type AgentBench, createAgentBench, whyNoAgent } from "./agent-bench.js";
import { startApart } from "./apart.js";
import type { Turn } from "./model-server.js";
import { SUBJECTS, type Subject } from "./subjects.js";

let bench: AgentBench;
beforeAll(async () => {
  bench = await createAgentBench();
});
afterAll(async () => {
  await bench?.[Symbol.asyncDispose]();
});

const say = (text: string): Turn => ({ text, usage: { input: 1000, output: 100 } });
const FIX = "sed -i 's/a - b/a + b/' sum.mjs";

describe.each(SUBJECTS)("$agent", (subject) => {
  const reason = whyNoAgent(subject.program);
  const name = (id: string): string => `${subject.agent}-${id}`;
  const node = (id: string, more: Partial<NodeSpec> = {}): NodeSpec =>
    ({ id, kind: "agent", ...taskOf(subject), prompt: `the prompt of ${id}`, retry: { max: 0 }, ...more }) as NodeSpec;
  const start = (id: string, nodes: NodeSpec[], more: Partial<HarnessOptions> = {}): Promise<RunReport> =>
    bench.run(name(id), nodes, {
      env: subject.env(bench.gateway),
      secretSource: subject.secrets,
      limits: { wall: 120_000 },
      ...more,
    });
  const run = (id: string, body: () => Promise<void>): void => {
    test(id, async ({ skip }) => {
      if (reason !== undefined) return skip(reason);
      await body();
      // Nothing that a service would refuse, and no request to anybody else.
      expect(bench.model.faults).toEqual([]);
    });
  };

  run("edits a file by a tool call, with the key where the service wants it", async () => {
    bench.model.play([subject.shell("echo edited > made.txt"), say("it is made")]);
    const report = await start("edits", [node("work")]);
    expect(report.error).toBeUndefined();
    expect(report.status).toBe("success");
    expect(report.changes?.files).toEqual([{ path: "made.txt", status: "added" }]);
    expect(report.nodes[0]).toMatchObject({ output: "it is made", agent: { turns: 2, name: subject.agent } });
    expect(report.tokenUsage).toMatchObject({ input: 2000, output: 200 });
    expect(report.cost.usd).toEqual(subject.price === null ? null : expect.closeTo(2 * subject.price, 6));
    expect(bench.model.requests.map(({ auth }) => auth)).toEqual([subject.auth, subject.auth]);
    expect(report.warnings).toEqual([]);
    const calls = bench.harness.events(name("edits")).filter(({ type }) => type === "agent.tool_call");
    expect(JSON.stringify(calls)).toContain("echo edited > made.txt");
  });

  run("repairs a failing test through a gate", async () => {
    bench.model.play([subject.shell(FIX), say("repaired")]);
    const gate = {
      id: "green",
      kind: "gate",
      checks: [{ id: "test", run: ["node", "test.mjs"] }],
      onFail: { ...taskOf(subject), prompt: "repair it" },
    } as unknown as NodeSpec;
    const report = await start("gate", [gate]);
    expect(report.error).toBeUndefined();
    expect(report.nodes).toMatchObject([{ status: "success", rounds: 1, children: [{ status: "success" }] }]);
    expect(report.changes?.files).toEqual([{ path: "sum.mjs", status: "modified" }]);
  });

  run("continues its session, and is counted once", async () => {
    bench.model.play([say("first answer"), say("second answer"), say("third answer")]);
    const report = await start("continues", [
      node("one"),
      node("two", { continue: "one" }),
      node("three", { continue: "two" }),
    ]);
    expect(report.error).toBeUndefined();
    expect(bench.model.requests.at(-1)?.texts).toEqual(
      expect.arrayContaining([
        expect.stringContaining("the prompt of one"),
        "first answer",
        expect.stringContaining("the prompt of two"),
        "second answer",
        expect.stringContaining("the prompt of three"),
      ]),
    );
    for (const { agent } of report.nodes) {
      expect(agent?.usage).toEqual({ input: 1000, output: 100, cacheRead: 0, cacheWrite: 0 });
      expect(agent?.costUsd).toEqual(subject.price === null ? null : expect.closeTo(subject.price, 6));
    }
    expect(report.tokenUsage).toMatchObject({ input: 3000, output: 300 });
    expect(report.cost.usd).toEqual(subject.price === null ? null : expect.closeTo(3 * subject.price, 6));
  });

  run("knows its session again after kill -9 and a resume", async () => {
    let isAsked = (): void => undefined;
    const asked = new Promise<void>((resolve) => {
      isAsked = resolve;
    });
    bench.model.play((_request, at) => {
      if (at === 0) return say("first answer");
      isAsked();
      return { ...say("never heard"), stop: "hang" };
    });
    const child = await startApart(bench, {
      blueprint: { name: name("killed"), nodes: [node("one"), node("two", { continue: "one" })] },
      runId: name("killed"),
      ...{ env: subject.env(bench.gateway), secretSource: subject.secrets, keep: "never" },
    });
    await Promise.race([asked, child.ended.then((output) => Promise.reject(new Error(`it ended: ${output}`)))]);
    child.kill();
    await child.ended;
    bench.model.play([say("second answer")]);
    const report = await resumeRun({
      runId: name("killed"),
      secretSource: subject.secrets,
      sandbox: { env: bench.sandbox.env ?? {} },
    });
    expect(report.error).toBeUndefined();
    expect(report).toMatchObject({ status: "success", resumedFrom: "two", warnings: [] });
    expect(bench.model.requests[0]?.texts).toEqual(
      expect.arrayContaining([expect.stringContaining("the prompt of one"), "first answer"]),
    );
    expect(report.tokenUsage).toMatchObject({ input: 2000, output: 200 });
  });

  run("is stopped at its turns, and what it did is kept", async () => {
    bench.model.play((_request, at) => subject.shell(`echo ${at} >> made.txt`));
    const report = await start("turns", [node("work", { limits: { turns: 3 } })]);
    expect(report).toMatchObject({ status: "limit", exitCode: 5, limitsHit: [{ limit: "turns", allowed: 3 }] });
    expect(bench.model.requests.length).toBeLessThanOrEqual(5);
    expect(report.changes?.files).toEqual([{ path: "made.txt", status: "added" }]);
  });

  run("is stopped at its cost, or the limit is refused where it doesn't say what it costs", async () => {
    bench.model.play((_request, at) => subject.shell(`echo ${at} >> made.txt`));
    const limited = start("cost", [node("work", { limits: { costUsd: 0.01 } })]);
    if (subject.price === null) {
      await expect(limited).rejects.toMatchObject({ code: "unsupported" });
      return;
    }
    expect(await limited).toMatchObject({ status: "limit", exitCode: 5, limitsHit: [{ limit: "cost" }] });
    expect(bench.model.requests.length).toBeLessThanOrEqual(4);
  });

  run("is interrupted while it waits for its model", async () => {
    const stop = new AbortController();
    bench.model.play(() => {
      stop.abort();
      return { ...say("never heard"), stop: "hang" };
    });
    const report = await start("interrupted", [node("work")], { signal: stop.signal });
    expect(report).toMatchObject({ status: "cancelled", nodes: [{ status: "cancelled" }] });
  });

  run("is ended when its model falls silent", async () => {
    bench.model.play(() => ({ text: "x".repeat(400), stop: "hang" }));
    const report = await start("silent", [node("work", { limits: { idle: 15_000 } })]);
    expect(report).toMatchObject({ status: "limit", limitsHit: [{ limit: "idle" }] });
  });

  const FAILURES: [name: string, turn: Turn, code: string][] = [
    ["401", { status: 401 }, "unauthenticated"],
    ["403", { status: 403 }, "unauthenticated"],
    ["429", { status: 429 }, "rate_limit"],
    ["500", { status: 500, message: "trouble in the billing module" }, "network"],
    ["529", { status: 529 }, "rate_limit"],
  ];
  for (const [status, turn, code] of FAILURES) {
    run(`knows whose fault it was: ${status}`, async () => {
      bench.model.play(() => turn);
      const report = await start(`fails-${status}`, [node("work")]);
      expect(report.nodes[0]).toMatchObject({ status: "failure", agent: { failure: code }, error: { code } });
      expect(report.error?.retryable).toBe(["network", "rate_limit"].includes(code));
    });
  }

  run("gets over one overloaded answer by itself, and runs once", async () => {
    bench.model.play([{ status: 529 }, say("it is done")]);
    const report = await start("overloaded", [node("work")]);
    expect(report.nodes[0]).toMatchObject({ status: "success", attempt: 1, output: "it is done" });
    expect(report.tokenUsage).toMatchObject({ input: 1000, output: 100 });
  });

  run("meets a stream that is cut, and says so or gets over it", async () => {
    bench.model.play((_request, at) => (at < 9 ? { text: "x".repeat(400), stop: "cut" } : say("late")));
    const report = await start("cut", [node("work")]);
    const [work] = report.nodes;
    // Claude Code takes what came for the answer when it breaks off again and again.
    if (work?.status === "success") expect(work.output).toMatch(/^x+$/);
    else expect(work).toMatchObject({ status: "failure", error: { code: "network", retryable: true } });
  });

  run("fails for what its model says, and for nothing that it merely mentions", async () => {
    bench.model.play([say("the billing module answers 401 to too many requests")]);
    const report = await start("prose", [node("work")]);
    expect(report.nodes[0]).toMatchObject({ status: "success" });
    expect(report.nodes[0]?.agent?.failure).toBeUndefined();
    const folder = bench.harness.directoryOf(name("prose"));
    expect(existsSync(join(folder, "report.json"))).toBe(true);
    expect(readFileSync(join(folder, "report.json"), "utf8")).not.toContain("key-for-the-test");
  });
});

test("Claude Code has the token of a gateway where that wants it", async ({ skip }) => {
  const reason = whyNoAgent("claude");
  if (reason !== undefined) return skip(reason);
  bench.model.play([say("it is done")]);
  const report = await bench.run(
    "auth-token",
    [{ id: "work", kind: "agent", agent: "claude-code", model: "claude-sonnet-4-5", prompt: "say it" }],
    { env: { ANTHROPIC_BASE_URL: bench.gateway }, secretSource: { ANTHROPIC_AUTH_TOKEN: "token-of-the-gateway" } },
  );
  expect(report.nodes[0]).toMatchObject({ status: "success", output: "it is done" });
  expect(bench.model.requests.map(({ auth }) => auth)).toEqual([{ authorization: "Bearer token-of-the-gateway" }]);
  expect(bench.model.faults).toEqual([]);
});

function taskOf({ agent, model, args }: Subject): Record<string, unknown> {
  return { agent, ...(model !== undefined && { model }), ...(args !== undefined && { args }) };
}
