import { expect, test } from "vitest";
import { driverNamed, replayAgent, signalsOf } from "../../support/harness/replay-agent.js";

test("Copilot CLI 1.0.102, a success; it reports neither tokens nor cost", () => {
  const { signals, verdict } = replayAgent("copilot", "copilot-1.0.102.success");
  expect(verdict).toEqual({ isError: false, text: "All done." });
  expect(signalsOf(signals, "session")).toHaveLength(1);
  expect(signalsOf(signals, "turn")).toHaveLength(2);
  expect(signalsOf(signals, "tool_call")).toEqual([
    { type: "tool_call", tool: "create", summary: "/project/hello.txt" },
  ]);
  expect(signalsOf(signals, "tool_result")).toEqual([{ type: "tool_result", tool: "create", isError: false }]);
  expect(signalsOf(signals, "usage")).toEqual([]);
});

test.each([
  ["copilot-1.0.102.no-login", "unauthenticated", "authentication"],
  ["copilot-1.0.102.failed", "network", "query"],
])("%s fails as %s, by the fields of its error, and trying again is one turn", (file, failure, terminalReason) => {
  const { signals, verdict } = replayAgent("copilot", file, 1);
  expect(verdict).toMatchObject({ isError: true, failure, terminalReason });
  expect(signalsOf(signals, "turn")).toHaveLength(1);
});

test("the words of an error decide nothing", () => {
  const error = { type: "session.error", data: { errorType: "query", message: "401 billing rate limit" } };
  expect(replayAgent("copilot", [error, { type: "result", exitCode: 1 }]).verdict.failure).toBe("agent_error");
});

test("a stream that breaks off is the network's fault, as the kind of the failed request says", () => {
  const failed = (failureKind: string): unknown => ({ type: "model.call_failure", data: { failureKind } });
  const error = { type: "session.error", data: { errorType: "query", message: "unexpected EOF" } };
  const ended = (...lines: unknown[]): string | undefined =>
    replayAgent("copilot", [...lines, error, { type: "result", exitCode: 1 }]).verdict.failure;
  expect(ended(failed("transport"))).toBe("network");
  expect(ended(failed("transport"), failed("api"))).toBe("agent_error");
  expect(ended(failed("transport"), { type: "assistant.turn_start", data: {} })).toBe("agent_error");
});

test("tools are what it may use, and no token of GitHub's that can do more is taken", () => {
  const copilot = driverNamed("copilot");
  const { argv } = copilot.command({ prompt: "p", tools: ["write", "shell(npm test)"], sessionId: "id" });
  expect(argv.slice(-3)).toEqual(["--resume=id", "--allow-tool=write", "--allow-tool=shell(npm test)"]);
  expect(copilot.command({ prompt: "p" }).argv).toContain("--allow-all");
  expect(copilot.secrets.flat()).not.toContain("GITHUB_TOKEN");
});
