import { expect, test } from "vitest";
import { driverNamed, replayAgent, signalsOf } from "../../support/harness/replay-agent.js";

test("Gemini CLI 0.61.0, a success: its input includes what came from the cache, and its cost is not known", () => {
  const { signals, verdict } = replayAgent("gemini-cli", "gemini-cli-0.61.0.success");
  expect(verdict).toEqual({ isError: false, text: "All done." });
  expect(signalsOf(signals, "session")).toMatchObject([{ model: "gemini-2.5-pro" }]);
  expect(signalsOf(signals, "turn")).toHaveLength(2);
  expect(signalsOf(signals, "tool_call")).toEqual([
    { type: "tool_call", tool: "write_file", summary: "/project/hello.txt" },
  ]);
  expect(signalsOf(signals, "tool_result")).toEqual([{ type: "tool_result", tool: "write_file", isError: false }]);
  expect(signalsOf(signals, "message").map(({ text }) => text)).toEqual(["All done."]);
  expect(signalsOf(signals, "usage")).toEqual([
    { type: "usage", usage: { input: 120, output: 20, cacheRead: 80, cacheWrite: 0 } },
  ]);
});

test.each([
  [401 - 256, "unauthenticated"],
  [403 - 256, "unauthenticated"],
  [429 - 256, "rate_limit"],
  [500 - 256, "network"],
  [529 - 512, "rate_limit"],
  [41, "unauthenticated"],
  [1, "agent_error"],
])("exit code %i, which has the status of the request, means %s, whatever the words are", (exitCode, failure) => {
  expect(replayAgent("gemini-cli", "gemini-cli-0.61.0.no-login", exitCode).verdict).toMatchObject({
    isError: true,
    failure,
    text: expect.stringContaining("scripted failure 401"),
  });
});

test.each([
  ["[API Error: terminated]", "network"],
  ["[API Error: the billing module was terminated]", "agent_error"],
  ['[API Error: {"error":{"message":"terminated","code":"server_error"}}]', "agent_error"],
])("%s without a status means %s", (message, failure) => {
  const result = { type: "result", status: "error", error: { type: "unknown", message }, stats: {} };
  expect(replayAgent("gemini-cli", [result], 1).verdict).toMatchObject({ isError: true, failure, text: message });
});

test("its own limit of turns is a limit, and an end without a result is none", () => {
  expect(replayAgent("gemini-cli", [], 53).verdict).toMatchObject({ isError: true, limit: "turns" });
  expect(replayAgent("gemini-cli", [], 1).verdict).toMatchObject({ isError: true, failure: "no_result" });
});

test("it is asked by stdin, and continues a session by its id", () => {
  const { argv, stdin } = driverNamed("gemini-cli").command({ prompt: "p", systemPrompt: "s", sessionId: "a-b" });
  const flags = ["--output-format", "stream-json", "--skip-trust", "--approval-mode", "yolo", "--resume", "a-b"];
  expect(argv.slice(argv.indexOf("gemini") + 1)).toEqual(flags);
  expect(stdin).toBe("s\n\np");
});
