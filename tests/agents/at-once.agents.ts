import { afterAll, beforeAll, expect, test } from "vitest";
import { type AgentBench, createAgentBench, whyNoAgent } from "./agent-bench.js";
import { SUBJECTS, USED } from "./subjects.js";

const COUNT = 10;

let bench: AgentBench;
beforeAll(async () => {
  bench = await createAgentBench();
});
afterAll(async () => {
  await bench?.[Symbol.asyncDispose]();
});

test("ten real Claude Codes at once, on ten worktrees of one repository, have ten right reports", async ({ skip }) => {
  const subject = SUBJECTS.find(({ program }) => program === "claude");
  const reason = whyNoAgent("claude");
  if (reason !== undefined || subject === undefined) return skip(reason);
  await using gateway = await bench.openGateway();
  const started = new Set<number>();
  let allStarted = (): void => undefined;
  const after = new Promise<void>((resolve) => {
    allStarted = resolve;
  });
  // Which one asks is in its prompt; how far it got, in whether it has the result of a tool. Each uses tokens of its own number.
  gateway.model.play(({ body, texts }) => {
    const n = Number(/this is run (\d+)\./.exec(texts.join("\n"))?.[1]);
    const usage = { input: USED.input + n, output: USED.output + n };
    const hasResult = JSON.stringify(body["messages"]).includes('"tool_result"');
    // None is answered before all are there: so all run at once.
    if (started.add(n).size === COUNT) allStarted();
    if (!hasResult) return { ...subject.shell(`echo ${n} > mine.txt; echo ${n} > only-${n}.txt`), usage, after };
    return { text: `run ${n} is done`, usage };
  });
  const numbers = Array.from({ length: COUNT }, (_, n) => n);
  const reports = await Promise.all(
    numbers.map((n) =>
      bench.run(
        gateway,
        `at-once-${n}`,
        [{ id: "work", kind: "agent", ...subject.task, prompt: `this is run ${n}.` } as never],
        {
          env: subject.env(gateway.url),
          secretSource: subject.secrets,
        },
      ),
    ),
  );
  expect(gateway.model.faults).toEqual([]);
  expect(reports.map(({ status, error, warnings }) => ({ status, error, warnings }))).toEqual(
    reports.map(() => ({ status: "success", error: undefined, warnings: [] })),
  );
  for (const [n, report] of reports.entries()) {
    expect(report.runId).toBe(`at-once-${n}`);
    expect(report.changes?.files).toEqual([
      { path: "mine.txt", status: "added" },
      { path: `only-${n}.txt`, status: "added" },
    ]);
    expect(bench.harness.file(`at-once-${n}`, "changes.patch")).toContain(`\n+${n}\n`);
    const [input, output] = [2 * (USED.input + n), 2 * (USED.output + n)];
    expect(report.tokenUsage).toEqual({ input, output, cacheRead: 0, cacheWrite: 0 });
    // 3 dollars for a million tokens of input, 15 for one of output.
    expect(report.cost.usd).toBeCloseTo((3 * input + 15 * output) / 1e6, 8);
    expect(report.nodes[0]).toMatchObject({ output: `run ${n} is done`, attempt: 1, agent: { turns: 2 } });
    const calls = bench.harness.events(`at-once-${n}`).filter(({ type }) => type === "agent.tool_call");
    expect(calls).toMatchObject([{ summary: expect.stringContaining(`only-${n}.txt`) as string }]);
  }
  expect(new Set(reports.map(({ nodes }) => nodes[0]?.agent?.sessionId)).size).toBe(COUNT);
  expect(gateway.model.requests).toHaveLength(2 * COUNT);
});
