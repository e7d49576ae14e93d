import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { builtInAgents, driverOf, findVersion, versionFault } from "../../../src/harness/agents.js";
import type { AgentDriver, AgentSignal, AgentTask, AgentVerdict, SessionTotals } from "../../../src/harness/types.js";

const task = (agent: string, more: Partial<AgentTask> = {}): AgentTask => ({
  agent,
  prompt: "p",
  network: { allow: [] },
  limits: {},
  ...more,
});
const driver = (name: string, more?: Partial<AgentTask>): AgentDriver => driverOf(task(name, more));

/** Feeds what a program of a known version printed. */
function replay(file: string): { signals: AgentSignal[]; verdict: AgentVerdict } {
  const path = fileURLToPath(new URL(`../../fixtures/agents/${file}.jsonl`, import.meta.url));
  const reader = driver(/^(.+?)-\d/.exec(file)?.[1] ?? "").reader();
  const signals = readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .flatMap((line) => [...reader.line(line)]);
  const last = signals.find((signal) => signal.type === "result");
  return { signals, verdict: last?.result ?? reader.end({ exitCode: 1, stderr: "" }) };
}
const of = <T extends AgentSignal["type"]>(signals: AgentSignal[], type: T): Extract<AgentSignal, { type: T }>[] =>
  signals.filter((signal): signal is Extract<AgentSignal, { type: T }> => signal.type === type);

describe("what the CLIs print is understood:", () => {
  test("Claude Code 2.1.325, a success", () => {
    const { signals, verdict } = replay("claude-code-2.1.325.success");
    expect(verdict).toEqual({
      isError: false,
      text: "The sum started at 1; it is mended.",
      turns: 2,
      terminalReason: "completed",
    });
    expect(of(signals, "session")).toEqual([
      { type: "session", sessionId: "6c1f0f5e-1111-4222-8333-944455556666", model: "claude-sonnet-x" },
    ]);
    expect(of(signals, "turn")).toHaveLength(2);
    expect(of(signals, "tool_call")).toEqual([{ type: "tool_call", tool: "Bash", summary: "npm test" }]);
    expect(of(signals, "tool_result")).toEqual([{ type: "tool_result", isError: true }]);
    expect(of(signals, "usage").slice(-1)).toMatchObject([
      { type: "usage", usage: { input: 10, output: 60, cacheRead: 2000, cacheWrite: 300 }, costUsd: 0.0412 },
    ]);
  });

  test("Claude Code 2.1.325 without a login: an error, whatever the subtype says", () => {
    expect(replay("claude-code-2.1.325.no-login").verdict).toMatchObject({
      isError: true,
      failure: "unauthenticated",
      terminalReason: "api_error",
    });
  });

  test("Claude Code 2.1.325 at its turns: a limit, not a failure", () => {
    expect(replay("claude-code-2.1.325.max-turns").verdict).toEqual({
      isError: true,
      limit: "turns",
      turns: 3,
      terminalReason: "error_max_turns",
      text: "Reached maximum number of turns (3)",
    });
  });

  test("Codex 0.166.0, a success; its cost is not known", () => {
    const { signals, verdict } = replay("codex-0.166.0.success");
    expect(verdict).toEqual({ isError: false, text: "The sum is mended." });
    expect(of(signals, "session")[0]?.sessionId).toBe("0199a213-81c0-7800-8aa1-bbab2a035a53");
    expect(of(signals, "usage")).toMatchObject([
      { type: "usage", usage: { input: 315, output: 122, cacheRead: 24448, cacheWrite: 0 } },
    ]);
    expect(of(signals, "tool_call")).toEqual([{ type: "tool_call", tool: "shell", summary: "bash -lc 'npm test'" }]);
    expect(of(signals, "tool_result").map(({ tool, isError }) => `${tool} ${isError}`)).toEqual([
      "shell true",
      "edit false",
    ]);
  });

  test("Codex 0.166.0 offline: reconnecting is no sign of life, and the network's fault", () => {
    const { signals, verdict } = replay("codex-0.166.0.offline");
    expect(signals.map(({ type }) => type)).toEqual(["session", "turn"]);
    expect(verdict).toMatchObject({ isError: true, failure: "network", text: "Reconnecting... 3/5" });
  });

  test("Codex 0.166.0, a failure by its service", () => {
    expect(replay("codex-0.166.0.failed").verdict).toMatchObject({ isError: true, failure: "rate_limit" });
  });

  test("Pi 1.5.0, a success; what it used is added up", () => {
    const { signals, verdict } = replay("pi-1.5.0.success");
    expect(verdict).toEqual({ isError: false, text: "The sum is mended.", terminalReason: "stop" });
    expect(of(signals, "usage").at(-1)).toEqual({
      type: "usage",
      usage: { input: 110, output: 25, cacheRead: 150, cacheWrite: 50 },
      costUsd: 0.005,
    });
    expect(of(signals, "turn")).toHaveLength(2);
    expect(of(signals, "tool_call")).toEqual([{ type: "tool_call", tool: "bash", summary: "npm test" }]);
  });

  test("Pi 1.5.0, a failure that is told only in a message", () => {
    expect(replay("pi-1.5.0.error").verdict).toMatchObject({
      isError: true,
      failure: "unauthenticated",
      text: "401 invalid x-api-key",
    });
  });
});

describe("a command line", () => {
  const request = {
    prompt: "do it; $(rm)",
    systemPrompt: "be brief",
    model: "m",
    sessionId: "s",
    maxCostUsd: 1.23456,
    maxTurns: 5,
  };

  test.each(["claude-code", "codex", "pi"])("of %s has no prompt in it", (name) => {
    const { argv, stdin } = driver(name).command(request);
    expect(argv.join(" ")).not.toContain("do it");
    expect(stdin).toContain("do it; $(rm)");
  });

  test("of Claude Code bounds it and switches its own sandbox off", () => {
    const { argv, env } = driver("claude-code").command(request);
    expect(argv).toEqual([
      ...["claude", "-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config"],
      ...["--settings", '{"sandbox":{"enabled":false}}', "--model", "m", "--append-system-prompt", "be brief"],
      ...["--resume", "s", "--max-budget-usd", "1.2346", "--max-turns", "5", "--dangerously-skip-permissions"],
    ]);
    expect(env).toMatchObject({ IS_SANDBOX: "1" });
  });

  test("of Codex goes on with a session and switches its own sandbox off", () => {
    const { argv, stdin } = driver("codex").command(request);
    expect(argv).toEqual([
      ...[
        "/bin/sh",
        "-c",
        '[ -n "$CODEX_API_KEY" ] || [ -z "$OPENAI_API_KEY" ] || export CODEX_API_KEY="$OPENAI_API_KEY"; exec codex "$@"',
        "codex",
      ],
      ...["exec", "resume", "s", "--json", "--skip-git-repo-check", "--ignore-user-config"],
      ...["--dangerously-bypass-approvals-and-sandbox", "--disable", "plugins", "--disable", "apps"],
      ...["-c", "analytics.enabled=false", "--model", "m", "-"],
    ]);
    expect(stdin).toBe("be brief\n\ndo it; $(rm)");
    expect(driver("codex").command({ prompt: "p" }).argv.slice(3, 6)).toEqual(["codex", "exec", "--json"]);
  });

  test("of Pi has its tools as one list", () => {
    const { argv } = driver("pi").command({ prompt: "p", tools: ["read", "bash"], sessionId: "s" });
    expect(argv).toEqual([
      "pi",
      "-p",
      "--mode",
      "json",
      "--no-extensions",
      "--no-skills",
      "--tools",
      "read,bash",
      "--fork",
      "s",
    ]);
  });

  test.each(builtInAgents().map(({ name }) => name))("of %s has the arguments of its node", (name) => {
    const { argv } = driver(name).command({ prompt: "p", args: ["--own", "x y"] });
    expect(argv.join("\n")).toContain("--own\nx y");
  });

  test("leads Codex and Pi to a gateway, and takes more arguments", () => {
    const env = { OPENAI_BASE_URL: 'https://gateway.test/"v1', ANTHROPIC_BASE_URL: "https://gateway.test" };
    const { argv } = driver("codex").command({ prompt: "p", env, args: ["-c", "x=1"] });
    expect(argv).toContain('model_provider="gateway"');
    expect(argv.join(" ")).toContain('base_url="https://gateway.test/\\"v1"');
    expect(argv.slice(-3)).toEqual(["-c", "x=1", "-"]);
    const { homeFiles = {} } = driver("pi").command({ prompt: "p", env });
    expect(JSON.parse(homeFiles[".pi/agent/models.json"] ?? "")).toEqual({
      providers: { anthropic: { baseUrl: env.ANTHROPIC_BASE_URL }, openai: { baseUrl: env.OPENAI_BASE_URL } },
    });
    expect(driver("pi").command({ prompt: "p" }).homeFiles).toBeUndefined();
  });
});

describe("a session that is continued is counted once:", () => {
  const last = (name: string, line: unknown, before: SessionTotals | undefined) => {
    const signals = driver(name).reader(before).line(JSON.stringify(line));
    return signals.find((signal) => signal.type === "usage");
  };
  const tokens = (input: number, output: number) => ({ input, output, cacheRead: 0, cacheWrite: 0 });
  const models = (inputTokens: number, outputTokens: number, costUSD: number) => ({
    m: { inputTokens, outputTokens, costUSD },
  });
  const result = (modelUsage: unknown, cost: number, more = {}) => ({
    ...{ type: "result", is_error: false, total_cost_usd: cost, modelUsage, ...more },
    usage: { input_tokens: 2000, output_tokens: 200 },
  });
  const before = { usage: tokens(1000, 100), costUsd: 0.011 };

  test("Claude Code 2.1.327 says what it used since it was started", () => {
    const more = { model_usage_since_last_result: models(2000, 200, 0.022) };
    expect(last("claude-code", result(models(3000, 300, 0.033), 0.033, more), before)).toEqual({
      ...{ type: "usage", usage: tokens(2000, 200), costUsd: 0.022 },
      session: { usage: tokens(3000, 300), costUsd: 0.033 },
    });
  });

  test("a Claude Code that does not is believed what its models used", () => {
    expect(last("claude-code", result(models(3000, 300, 0.033), 0.033), before)).toMatchObject({
      costUsd: expect.closeTo(0.022, 9),
    });
    expect(last("claude-code", result(models(2000, 200, 0.022), 0.022), before)).toMatchObject({ costUsd: 0.022 });
    expect(last("claude-code", result(models(2000, 200, 0.022), 0.022), undefined)).toMatchObject({ costUsd: 0.022 });
  });

  test("Codex, whose count goes on from the last one or starts anew", () => {
    const done = (input_tokens: number, output_tokens: number) => ({
      type: "turn.completed",
      usage: { input_tokens, output_tokens },
    });
    expect(last("codex", done(3000, 300), before)).toMatchObject({ usage: tokens(2000, 200) });
    expect(last("codex", done(2000, 90), before)).toMatchObject({ usage: tokens(2000, 90) });
    expect(last("codex", done(3000, 300), undefined)).toMatchObject({ usage: tokens(3000, 300) });
  });
});

describe("whose fault a failure was", () => {
  const claude = (more: Record<string, unknown>) => ({ type: "result", subtype: "success", is_error: true, ...more });
  const codex = (message: string) => ({ type: "turn.failed", error: { message } });
  const verdictOf = (name: string, ...lines: unknown[]): AgentVerdict | undefined => {
    const reader = driver(name).reader();
    const signals = lines.flatMap((line) => reader.line(JSON.stringify(line)));
    return signals.find((signal) => signal.type === "result")?.result;
  };

  test.each([
    [{ api_error_status: 401, result: "x" }, "unauthenticated"],
    [{ api_error_status: 403, result: "Failed to authenticate" }, "unauthenticated"],
    [{ api_error_status: 429, api_error_type: "rate_limit_error" }, "rate_limit"],
    [{ api_error_status: 500, result: "trouble in the billing module" }, "network"],
    [{ api_error_status: 529 }, "rate_limit"],
    [{ api_error_status: 400, result: "billing, 401, rate limit" }, "agent_error"],
  ])("is in the fields of Claude Code: %j", (fields, failure) => {
    expect(verdictOf("claude-code", claude(fields))).toMatchObject({ failure });
  });

  test("is in the message of Claude Code that stands for an error", () => {
    const message = { role: "assistant", content: [{ type: "text", text: "Credit balance is too low" }] };
    const event = { type: "assistant", message, is_api_error_message: true, error: "billing_error" };
    expect(verdictOf("claude-code", event, claude({ api_error_status: 400 }))).toMatchObject({ failure: "quota" });
  });

  test.each([
    ["unexpected status 401 Unauthorized: x, url: http://gateway.test/v1/responses", "unauthenticated"],
    ["unexpected status 403 Forbidden: billing", "unauthenticated"],
    ["exceeded retry limit, last status: 429 Too Many Requests", "rate_limit"],
    ["We’re currently experiencing high demand, which may cause temporary errors.", "network"],
    ["stream disconnected before completion: Transport error", "network"],
    ['{"error":{"message":"x","type":"insufficient_quota","code":"insufficient_quota"}}', "quota"],
    ['{"error":{"message":"the rate limit of the billing module","type":"invalid_request_error"}}', "agent_error"],
  ])("is in the error of Codex: %s", (message, failure) => {
    expect(verdictOf("codex", codex(message))).toMatchObject({ failure });
  });

  test.each([
    ['529 {"type":"error","error":{"type":"overloaded_error","message":"x"}}', "rate_limit"],
    ['403 {"type":"error","error":{"type":"permission_error","message":"x"}}', "unauthenticated"],
    ["terminated", "network"],
    // As 1.5.2 writes it.
    ["terminated: other side closed (UND_ERR_SOCKET)", "network"],
    ["the model refuses to talk about 401 and billing", "agent_error"],
  ])("is in the error of Pi: %s", (errorMessage, failure) => {
    const message = { role: "assistant", stopReason: "error", errorMessage, content: [] };
    const lines = [
      { type: "message_end", message },
      { type: "agent_end", willRetry: false },
    ];
    expect(verdictOf("pi", ...lines)).toMatchObject({ isError: true, failure });
  });

  test("is never in the words of a model", () => {
    const reader = driver("command", { command: ["x"] }).reader();
    reader.line("401: too many requests to the billing module, connection lost");
    expect(reader.end({ exitCode: 1, stderr: "" })).toMatchObject({ failure: "no_result" });
  });

  test.each([
    ["claude-code", "500 files were looked at", "no_result"],
    ["claude-code", "unexpected status 401 Unauthorized", "unauthenticated"],
    // Which service a program of one's own did not reach is not known: it may be one that its tests start.
    ["command", "429 tests failed", "no_result"],
    ["command", "connect ECONNREFUSED 127.0.0.1:5432", "no_result"],
    ["command", '{"error":{"type":"rate_limit_error"}}', "no_result"],
  ])("is in the stderr of %s only as its program reports it: %s", (name, stderr, failure) => {
    const reader = driver(name, name === "command" ? { command: ["x"] } : {}).reader();
    expect(reader.end({ exitCode: 1, stderr })).toMatchObject({ failure });
  });
});

test("Pi is judged by its last end: one before it tries again is none", () => {
  const reader = driver("pi").reader();
  const end = (stopReason: string, willRetry: boolean): AgentSignal[] => [
    ...reader.line(JSON.stringify({ type: "message_end", message: { role: "assistant", stopReason, content: [] } })),
    ...reader.line(JSON.stringify({ type: "agent_end", willRetry })),
  ];
  expect(of(end("error", true), "result")).toEqual([]);
  expect(of(end("stop", false), "result")).toMatchObject([{ result: { isError: false } }]);
});

test("Codex has a turn for each round of tools", () => {
  const reader = driver("codex").reader();
  const item = (type: string, id: string, kind: string) => ({
    type: `item.${type}`,
    item: { id, type: kind, text: "t" },
  });
  const turns = [
    { type: "turn.started" },
    item("completed", "0", "agent_message"),
    ...[item("started", "1", "command_execution"), item("started", "2", "command_execution")],
    ...[item("completed", "1", "command_execution"), item("completed", "2", "command_execution")],
    item("started", "3", "command_execution"),
    item("completed", "3", "command_execution"),
    item("completed", "4", "agent_message"),
  ].map((line) => of([...reader.line(JSON.stringify(line))], "turn").length);
  expect(turns).toEqual([1, 0, 0, 0, 0, 0, 1, 0, 1]);
});

describe("a program of one's own", () => {
  test("that prints text is judged by its exit code", () => {
    const reader = driver("command", { command: ["x"] }).reader();
    expect(reader.line("hello")).toEqual([{ type: "message", text: "hello" }]);
    expect(reader.end({ exitCode: 0, stderr: "" })).toEqual({ isError: false, text: "hello" });
    expect(reader.end({ exitCode: 2, stderr: "why" })).toMatchObject({
      isError: true,
      failure: "no_result",
      text: "hello\nwhy",
    });
  });

  test("that prints events can tell its cost", () => {
    const own = driver("command", { command: ["x"], output: "events" });
    expect(own.reportsCost).toBe(true);
    const reader = own.reader();
    expect(reader.line('{"type":"usage","usage":{"input":3},"costUsd":0.5}')).toEqual([
      { type: "usage", usage: { input: 3, output: 0, cacheRead: 0, cacheWrite: 0 }, costUsd: 0.5 },
    ]);
    expect(reader.line('{"type":"result","text":"t","isError":true}')).toEqual([
      { type: "result", result: { isError: true, text: "t", failure: "agent_error" } },
    ]);
    expect(reader.line('{"type":"result","text":"t","isError":true,"failure":"rate_limit"}')).toMatchObject([
      { result: { failure: "rate_limit" } },
    ]);
    expect(reader.line('{"type":"result","text":"t","isError":true,"failure":"crash"}')).toMatchObject([
      { result: { failure: "agent_error" } },
    ]);
    expect(reader.line("between")).toEqual([]);
  });
});

test("an agent killed by a signal has crashed; one that says nothing has no result", () => {
  const { end } = {
    end: (exit: { exitCode: number; signal?: string; stderr: string }) => driver("claude-code").reader().end(exit),
  };
  expect(end({ exitCode: 137, signal: "SIGKILL", stderr: "" })).toMatchObject({ isError: true, failure: "crash" });
  expect(end({ exitCode: 0, stderr: "" })).toMatchObject({ isError: true, failure: "no_result" });
  expect(end({ exitCode: 1, stderr: "getaddrinfo ENOTFOUND api.anthropic.com" })).toMatchObject({ failure: "network" });
});

test.each(["claude-code", "codex", "pi"])("whatever %s prints, reading it does not throw", (name) => {
  const types = fc.constantFrom(
    "system",
    "assistant",
    "user",
    "result",
    "item.completed",
    "turn.completed",
    "turn.failed",
    "message_end",
    "agent_end",
    "error",
    "session",
  );
  const event = fc.record(
    {
      type: types,
      subtype: fc.jsonValue(),
      message: fc.jsonValue(),
      item: fc.jsonValue(),
      usage: fc.jsonValue(),
      result: fc.jsonValue(),
      error: fc.jsonValue(),
    },
    { requiredKeys: ["type"] },
  );
  fc.assert(
    fc.property(
      fc.oneof(
        event.map((value) => JSON.stringify(value)),
        fc.string(),
      ),
      (line) => {
        const reader = driver(name).reader();
        reader.line(line);
        reader.end({ exitCode: 1, stderr: line });
      },
    ),
  );
});

test("versions are found and compared by their numbers", () => {
  expect(findVersion("2.1.325 (Claude Code)")).toBe("2.1.325");
  expect(findVersion("codex-cli 0.166.0\n")).toBe("0.166.0");
  expect(findVersion("none")).toBeUndefined();
  const isTooOld = (version: string, minVersion: string): boolean =>
    versionFault({ ...driver("codex"), minVersion, tried: [] }, version)?.isTooOld === true;
  expect([isTooOld("0.99.9", "0.100.0"), isTooOld("2.0.0", "2.0.0"), isTooOld("10.0.0", "9.9.9")]).toEqual([
    true,
    false,
    false,
  ]);
});
