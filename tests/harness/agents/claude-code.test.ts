import { describe, expect, test } from "vitest";
import { driverOf } from "../../../src/harness/agents.js";
import type { AgentReader, AgentSignal, SessionTotals } from "../../../src/harness/types.js";

const driver = driverOf({ agent: "claude-code", prompt: "p", network: { allow: [] }, limits: {} });
const tokens = (input: number, output: number) => ({ input, output, cacheRead: 0, cacheWrite: 0 });
const models = (n: number) => ({ m: { inputTokens: 1000 * n, outputTokens: 100 * n, costUSD: 0.01 * n } });

const read = (reader: AgentReader, events: readonly unknown[]): AgentSignal[] =>
  events.flatMap((event) => [...reader.line(JSON.stringify(event))]);
const of = <T extends AgentSignal["type"]>(signals: AgentSignal[], type: T): Extract<AgentSignal, { type: T }>[] =>
  signals.filter((signal): signal is Extract<AgentSignal, { type: T }> => signal.type === type);

const init = { type: "system", subtype: "init", session_id: "s" };
/** A piece of a message, each of which repeats what the message used. */
const said = (id: string, parent: string | null = null, text = "t") => ({
  type: "assistant",
  parent_tool_use_id: parent,
  message: { id, content: [{ type: "text", text }], usage: { input_tokens: 1000, output_tokens: 100 } },
});
/** A result that comes after `all` requests of the session, of which `fresh` are new, `main` of them the agent's own. */
const result = (all: number, fresh: number, main: number, more: object = {}) => ({
  ...{ type: "result", subtype: "success", is_error: false, num_turns: main, result: `after ${all}` },
  ...{ total_cost_usd: 0.01 * all, modelUsage: models(all), model_usage_since_last_result: models(fresh) },
  usage: { input_tokens: 1000 * main, output_tokens: 100 * main },
  ...more,
});

describe("Claude Code with subagents", () => {
  // As 2.1.327 printed it: the second piece of work starts before the result of the first, and is none.
  const stream = [
    ...[init, said("1"), said("2"), said("a", "t1"), said("b", "t2"), said("a", "t1"), said("b", "t2")],
    ...[
      init,
      result(4, 4, 2),
      result(4, 0, 0, { result: "", modelUsage: models(4), model_usage_since_last_result: {} }),
    ],
    ...[init, said("3"), result(5, 1, 1)],
  ];

  test("counts all results, with what the subagents used", () => {
    const usage = of(read(driver.reader(), stream), "usage");
    expect(usage.at(-1)).toMatchObject({ usage: tokens(5000, 500), costUsd: expect.closeTo(0.05, 9) as number });
    // It never goes down on the way.
    const inputs = usage.map((signal) => signal.usage?.input ?? 0);
    expect(inputs).toEqual(inputs.toSorted((a, b) => a - b));
  });

  test("counts its own turns, whatever comes between the pieces of a message", () => {
    expect(of(read(driver.reader(), stream), "turn")).toHaveLength(3);
  });

  test("is at work until there is a result for all that it began; an empty one is no answer", () => {
    const reader = driver.reader();
    const work = stream.map((event) =>
      read(reader, [event]).findLast(({ type }) => ["alive", "result"].includes(type)),
    );
    const results = work.flatMap((signal, at) =>
      JSON.stringify(stream[at]).includes('"result"') ? [signal?.type] : [],
    );
    expect(results).toEqual(["alive", "result", "result"]);
    const verdicts = of(read(driver.reader(), stream), "result").map(({ result: { text, turns } }) => [text, turns]);
    expect(verdicts).toEqual([
      ["after 4", 2],
      ["after 4", 2],
      ["after 5", 3],
    ]);
  });

  test.each([
    ["in a new session", undefined, tokens(4000, 400), 0.04],
    ["in a session that it counts as a whole", { usage: tokens(1000, 100), costUsd: 0.01 }, tokens(3000, 300), 0.03],
    ["in a session that it counts anew", { usage: tokens(9000, 900), costUsd: 0.09 }, tokens(4000, 400), 0.04],
  ] satisfies [string, SessionTotals | undefined, object, number][])(
    "of an older version counts what the models used, %s",
    (_name, before, usage, costUsd) => {
      const { model_usage_since_last_result: _, ...old } = result(4, 4, 2);
      const [last] = of(read(driver.reader(before), [init, said("1"), old]), "usage").slice(-1);
      expect(last).toMatchObject({ usage, costUsd: expect.closeTo(costUsd, 9) as number });
    },
  );
});

test("Claude Code is never given a budget that it refuses", () => {
  const { argv } = driver.command({ prompt: "p", maxCostUsd: 0.000_01 });
  expect(argv[argv.indexOf("--max-budget-usd") + 1]).toBe("0.0001");
});
