import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type AgentBench, createAgentBench, whyNoAgent } from "./agent-bench.js";
import type { ModelRequest, Turn } from "./model-server.js";
import { Stage, say } from "./stage.js";
import { SUBJECTS, USED } from "./subjects.js";

/** Longer than an agent has to end after its result. */
const LONGER_THAN_GRACE = 12_000;

let bench: AgentBench;
beforeAll(async () => {
  bench = await createAgentBench();
});
afterAll(async () => {
  await bench?.[Symbol.asyncDispose]();
});

/** What a subagent is asked, which is not in what its parent is asked. */
const isOfSubagent = ({ texts }: ModelRequest): boolean =>
  texts.some((text) => text.includes("the work of")) && !texts.some((text) => text.includes("the prompt of work"));
const results = ({ body }: ModelRequest): number =>
  JSON.stringify(body["messages"]).match(/"type":"tool_result"/g)?.length ?? 0;

test("Claude Code works on when its subagents have ended, and all of it is counted", async ({ skip }) => {
  const subject = SUBJECTS.find(({ program }) => program === "claude");
  const reason = whyNoAgent("claude");
  if (reason !== undefined || subject === undefined) return skip(reason);
  await using gateway = await bench.openGateway();
  const stage = new Stage(bench, gateway, subject, "subagents");
  const task = (name: string) => ({
    name: "Task",
    input: { description: name, prompt: `the work of ${name}`, subagent_type: "general-purpose" },
  });
  let asked = 0;
  const parent: readonly (() => Turn)[] = [
    () => ({ text: "I delegate.", tools: [task("one"), task("two")], usage: USED }),
    () => say("they are at work"),
    () => ({ ...subject.shell("echo made > late.txt"), after: delay(LONGER_THAN_GRACE) }),
  ];
  stage.play((request) => {
    if (!isOfSubagent(request)) return parent[asked++]?.() ?? say("all is done");
    // Two tools at once: their messages come in pieces, between those of the other subagent.
    const step = { name: "Bash", input: { command: "sleep 1", description: "wait" } };
    return results(request) < 2 ? { text: "I wait.", tools: [step, step], usage: USED } : say("waited");
  });
  const report = await stage.run([stage.node("work", { limits: { turns: 6 } })]);
  expect(gateway.model.faults).toEqual([]);
  expect(report).toMatchObject({ status: "success", limitsHit: [] });
  expect(report.changes?.files).toEqual([{ path: "late.txt", status: "added" }]);
  const requests = stage.asked.length;
  expect(requests).toBeGreaterThanOrEqual(8);
  const [input, output] = [USED.input * requests, USED.output * requests];
  expect(report.tokenUsage).toEqual({ input, output, cacheRead: 0, cacheWrite: 0 });
  expect(report.cost.usd).toBeCloseTo((subject.price ?? 0) * requests, 8);
  expect(report.nodes[0]?.output).toBe("all is done");
});
