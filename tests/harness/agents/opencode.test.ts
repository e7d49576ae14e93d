import { expect, test } from "vitest";
import { driverNamed, replayAgent, signalsOf } from "../../support/harness/replay-agent.js";

const opencode = driverNamed("opencode");

test("opencode 1.18.33, a success: its tokens are summed over the steps, and an unknown price is no cost", () => {
  const { signals, verdict } = replayAgent("opencode", "opencode-1.18.33.success");
  expect(verdict).toEqual({ isError: false, text: "All done." });
  expect(signalsOf(signals, "session")).toHaveLength(1);
  expect(signalsOf(signals, "turn")).toHaveLength(2);
  expect(signalsOf(signals, "tool_call")).toEqual([
    { type: "tool_call", tool: "write", summary: "/project/hello.txt" },
  ]);
  expect(signalsOf(signals, "tool_result")).toEqual([{ type: "tool_result", tool: "write", isError: false }]);
  expect(signalsOf(signals, "usage").at(-1)).toEqual({
    type: "usage",
    usage: { input: 120, output: 20, cacheRead: 80, cacheWrite: 0 },
    isUnpriced: true,
  });
});

test.each([
  ["opencode-1.18.33.no-login", "unauthenticated"],
  ["opencode-1.18.33.overloaded", "rate_limit"],
])("%s fails as %s, by the status of the request", (file, failure) => {
  expect(replayAgent("opencode", file, 1).verdict).toMatchObject({
    isError: true,
    failure,
    terminalReason: "APIError",
  });
});

test("an error is classified by its fields, never by its words", () => {
  const error = (data: object): unknown => ({ type: "error", sessionID: "s", error: { name: "APIError", data } });
  const failure = (data: object): unknown => replayAgent("opencode", [error(data)], 1).verdict.failure;
  expect(failure({ message: "401 billing rate limit", isRetryable: false })).toBe("agent_error");
  expect(failure({ message: "broken", isRetryable: true })).toBe("network");
  expect(failure({ message: "broken", statusCode: 402 })).toBe("quota");
});

test("a step that is asked for again is one turn and no sign of life, and an error before the next step is forgotten", () => {
  const step = (messageID: string): unknown => ({ type: "step_start", sessionID: "s", part: { messageID } });
  const finish = (reason: string): unknown => ({
    type: "step_finish",
    sessionID: "s",
    part: { reason, cost: 0.25, tokens: { input: 1, output: 2, reasoning: 3, cache: { read: 4, write: 5 } } },
  });
  const error = { type: "error", sessionID: "s", error: { name: "APIError", data: { statusCode: 500 } } };
  const { signals, verdict } = replayAgent("opencode", [step("a"), step("a"), error, step("b"), finish("stop")]);
  expect(signals.map(({ type }) => type)).toEqual(["session", "turn", "turn", "usage"]);
  expect(signalsOf(signals, "usage")).toMatchObject([
    { costUsd: 0.25, usage: { output: 5, cacheRead: 4, cacheWrite: 5 } },
  ]);
  expect(verdict.isError).toBe(false);
});

test("an end without an answer is no success", () => {
  expect(replayAgent("opencode", [], 0).verdict).toMatchObject({ isError: true, failure: "no_result" });
});

test("tools become its rules: what is not named is denied, and a pattern allows what matches it", () => {
  const { env, argv } = opencode.command({ prompt: "p", tools: ["edit", "bash(npm test*)"], sessionId: "ses_1" });
  expect(JSON.parse(env?.["OPENCODE_PERMISSION"] ?? "")).toEqual({
    "*": "deny",
    edit: "allow",
    bash: { "*": "deny", "npm test*": "allow" },
  });
  expect(argv).toEqual(["opencode", "run", "--format", "json", "--pure", "--auto", "--session", "ses_1"]);
  expect(opencode.command({ prompt: "p" }).env).not.toHaveProperty("OPENCODE_PERMISSION");
});
