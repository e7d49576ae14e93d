import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { BlueprintSpec } from "../../../src/harness/types.js";
import { only, runInSandbox, useSandbox } from "../../support/harness/engine-run.js";

const PROGRAMS = fileURLToPath(new URL("../../fakes/programs", import.meta.url));
const place = useSandbox(() => ({ mounts: [{ source: PROGRAMS, target: "/opt/fake" }] }));
const AGENT = "/opt/fake/acp-agent.mjs";

/** A node whose agent does these steps. */
function ask(steps: readonly object[], more: Record<string, unknown> = {}, options: object = {}): BlueprintSpec {
  const prompt = ["work", ...steps.map((step) => JSON.stringify(step))].join("\n");
  const command = [process.execPath, AGENT, JSON.stringify(options)];
  return {
    name: "ask",
    nodes: [{ kind: "agent", id: "work", agent: "acp", command, prompt, retry: { max: 0 }, ...more }],
  };
}

async function answersTo(steps: readonly object[], more: Record<string, unknown> = {}): Promise<unknown> {
  const { outcome } = await runInSandbox(place.sandbox, ask(steps, more));
  expect(outcome).toMatchObject({ status: "success" });
  return JSON.parse(outcome.nodes[0]?.output ?? "");
}

const inside = (path: string): string => join(place.sandbox.workDir, path);

describe("an agent that speaks ACP", () => {
  test("reads and writes the files of the sandbox, whole or some lines, and learns that a file is missing", async () => {
    await place.sandbox.writeFile("lines.txt", "one\ntwo\nthree\n");
    const read = (path: string, more: object = {}): object => ({
      call: "fs/read_text_file",
      params: { path, ...more },
    });
    const answers = await answersTo([
      read(inside("lines.txt")),
      read(inside("lines.txt"), { line: 2, limit: 1 }),
      read(inside("missing.txt")),
      { call: "fs/write_text_file", params: { path: inside("new/file.txt"), content: "hello\n" } },
    ]);
    expect(answers).toEqual([{ content: "one\ntwo\nthree\n" }, { content: "two\n" }, { error: -32002 }, {}]);
    expect(await place.sandbox.readFile("new/file.txt")).toBe("hello\n");
  });

  test("gets the MCP servers of its node, by paths, as the protocol wants them", async () => {
    const mcp = { one: { command: ["node", "s.mjs"], env: { A: "b" } }, two: { command: ["/opt/fake/server"] } };
    expect(await answersTo([{ tellServers: true }], { mcp })).toEqual([
      [
        { name: "one", command: "/usr/bin/env", args: ["node", "s.mjs"], env: [{ name: "A", value: "b" }] },
        { name: "two", command: "/opt/fake/server", args: [], env: [] },
      ],
    ]);
    expect(await answersTo([{ tellServers: true }])).toEqual([[]]);
  });

  test("reaches no file of the host, and gets an error for what is not in the protocol", async () => {
    await place.sandbox.exec({ argv: ["ln", "-s", "/etc/passwd", "out"] });
    const other = { sessionId: "another", path: inside("lines.txt") };
    const answers = await answersTo([
      { call: "fs/read_text_file", params: { path: PROGRAMS } },
      { call: "fs/read_text_file", params: { path: inside("out") } },
      { call: "fs/write_text_file", params: { path: inside("out"), content: "x" } },
      { call: "fs/read_text_file", params: { path: "lines.txt" } },
      { call: "fs/read_text_file", params: other },
      { call: "host/shell", params: { command: "id" } },
    ]);
    expect(answers).toMatchObject([
      { error: -32603 },
      { error: -32603 },
      {},
      { error: -32602 },
      { error: -32602 },
      { error: -32601 },
    ]);
  });

  test("runs commands in terminals: output, exit code, kill and release", async () => {
    const terminal = (name: string): object => ({ call: `terminal/${name}`, params: { terminalId: "$TERMINAL" } });
    const answers = await answersTo([
      { call: "terminal/create", params: { command: "printf abcdef; pwd >&2; exit 3", outputByteLimit: 4 } },
      terminal("wait_for_exit"),
      terminal("output"),
      terminal("release"),
      terminal("output"),
      {
        call: "terminal/create",
        params: { command: "env", args: ["-u", "X", "sleep", "600"], env: [{ name: "A", value: "b" }] },
      },
      terminal("kill"),
      terminal("wait_for_exit"),
    ]);
    expect(answers).toMatchObject([
      { terminalId: "terminal-1" },
      { exitCode: 3, signal: null },
      { truncated: true, exitStatus: { exitCode: 3 } },
      {},
      { error: -32002 },
      { terminalId: "terminal-2" },
      {},
      { signal: "SIGKILL", exitCode: null },
    ]);
  });

  test("is permitted what it asks for, once", async () => {
    const options = [
      { optionId: "no", name: "No", kind: "reject_once" },
      { optionId: "always", name: "Always", kind: "allow_always" },
      { optionId: "yes", name: "Yes", kind: "allow_once" },
    ];
    const asks = (list: object[]): object => ({
      call: "session/request_permission",
      params: { toolCall: {}, options: list },
    });
    expect(await answersTo([asks(options), asks(options.slice(0, 1))])).toEqual([
      { outcome: { outcome: "selected", optionId: "yes" } },
      { outcome: { outcome: "cancelled" } },
    ]);
  });

  test("says what it does, and what it used", async () => {
    const usage = { inputTokens: 100, outputTokens: 20, totalTokens: 120, cachedReadTokens: 40 };
    const cost = { sessionUpdate: "usage_update", used: 1, size: 2, cost: { amount: 0.25, currency: "USD" } };
    const spec = ask(
      [
        { update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "I " } } },
        { update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "look." } } },
        {
          update: {
            sessionUpdate: "tool_call",
            toolCallId: "1",
            title: "Run",
            kind: "execute",
            rawInput: { command: "ls" },
          },
        },
        { update: { sessionUpdate: "tool_call_update", toolCallId: "1", status: "failed" } },
        { update: cost },
      ],
      {},
      { usage },
    );
    const { outcome, events } = await runInSandbox(place.sandbox, spec);
    expect(outcome.nodes[0]?.agent).toMatchObject({
      name: "acp",
      sessionId: "session-1",
      turns: 2,
      costUsd: 0.25,
      usage: { input: 60, output: 20, cacheRead: 40, cacheWrite: 0 },
    });
    expect(only(events, "agent.message").map(({ text }) => text)).toEqual(["I look.", "[]"]);
    expect(only(events, "agent.tool_call")).toMatchObject([{ tool: "execute", summary: "ls" }]);
    expect(only(events, "agent.tool_result")).toMatchObject([{ tool: "execute", isError: true }]);
  });

  test("names a tool once, also when it does so only to ask for a permission", async () => {
    const named = (toolCallId: string): object => ({ toolCallId, title: "ls", kind: "execute" });
    const asks = (toolCallId: string): object => ({
      call: "session/request_permission",
      params: { toolCall: named(toolCallId), options: [{ optionId: "yes", name: "Yes", kind: "allow_once" }] },
    });
    const done = (toolCallId: string): object => ({
      update: { sessionUpdate: "tool_call_update", toolCallId, status: "completed" },
    });
    const first = { update: { sessionUpdate: "tool_call", ...named("1") } };
    const { outcome, events } = await runInSandbox(
      place.sandbox,
      ask([first, asks("1"), done("1"), asks("2"), done("2")]),
    );
    expect(outcome.nodes[0]?.agent?.turns).toBe(3);
    expect(only(events, "agent.tool_call")).toMatchObject([
      { tool: "execute", summary: "ls" },
      { tool: "execute", summary: "ls" },
    ]);
    expect(only(events, "agent.tool_result")).toMatchObject([{ tool: "execute" }, { tool: "execute" }]);
  });

  test.each([
    ["of all its turns", 100, { input: 210, output: 20, cacheRead: 0, cacheWrite: 0 }],
    ["of its last turn alone, as its context shows", 210, undefined],
    ["of nobody knows how many turns", undefined, undefined],
  ])("counts the tokens %s", async (_, used, counted) => {
    const usage = { inputTokens: 210, outputTokens: 20, totalTokens: 230 };
    const steps = [
      { update: { sessionUpdate: "tool_call", toolCallId: "1", title: "Run", status: "completed" } },
      { update: { sessionUpdate: "usage_update", used, size: 1000, cost: { amount: 0.25, currency: "USD" } } },
    ];
    const { outcome } = await runInSandbox(place.sandbox, ask(steps, {}, { usage }));
    expect(outcome.nodes[0]?.agent).toMatchObject({ turns: 2, costUsd: 0.25 });
    expect(outcome.nodes[0]?.agent?.usage).toEqual(counted);
  });

  test.each([
    ["before it has loaded it", {}],
    ["after it has loaded it, as Gemini CLI does", { isHasty: true }],
  ])("continues the session of another node, and nothing of it counts that it repeats %s", async (_when, more) => {
    const command = [process.execPath, AGENT, JSON.stringify({ can: { loadSession: true }, ...more })];
    const cost = (amount: number): string =>
      JSON.stringify({
        update: { sessionUpdate: "usage_update", used: 1, size: 2, cost: { amount, currency: "USD" } },
      });
    const { outcome, events } = await runInSandbox(place.sandbox, {
      name: "two",
      nodes: [
        { kind: "agent", id: "first", agent: "acp", command, prompt: cost(0.5) },
        { kind: "agent", id: "second", agent: "acp", command, prompt: cost(0.75), continue: "first" },
      ],
    });
    expect(outcome.nodes.map(({ agent }) => agent?.costUsd)).toEqual([0.5, 0.25]);
    expect(outcome.nodes.map(({ output }) => output)).toEqual(["[]", "[]"]);
    expect(only(events, "agent.message").map(({ text }) => text)).toEqual(["[]", "[]"]);
  });

  test("that can't continue a session has failed", async () => {
    const { outcome } = await runInSandbox(place.sandbox, {
      name: "two",
      nodes: ["first", "second"].map((id) => ({
        ...{ kind: "agent", id, agent: "acp", command: [process.execPath, AGENT], prompt: "go" },
        ...(id === "second" && { continue: "first" }),
      })) as BlueprintSpec["nodes"],
    });
    expect(outcome.nodes[1]).toMatchObject({ status: "failure", output: "it can't continue a session" });
  });

  test("gets the model that the node names, if it has it", async () => {
    const session = { configOptions: [{ id: "m", category: "model", options: [{ value: "large", name: "Large" }] }] };
    const good = await runInSandbox(place.sandbox, ask([], { model: "large" }, { session }));
    expect(good.outcome.nodes[0]).toMatchObject({ status: "success", agent: { model: "large" } });
    const bad = await runInSandbox(place.sandbox, ask([], { model: "small" }, { session }));
    expect(bad.outcome.nodes[0]?.output).toBe('it has no model "small"; it has large');
  });
});

describe("an agent that speaks only version 2 of ACP", () => {
  const V2 = { only: 2 };
  const TOOL = { toolCallId: "t1", title: "Build", name: "shell", rawInput: { command: "make" } };
  const update = (sessionUpdate: string, more: object = {}): object => ({ update: { sessionUpdate, ...more } });

  test.each([
    ["says so", {}],
    ["understands nothing of version 1", { deaf: { code: -32602, message: "info: required" } }],
  ])("is spoken to in it where it %s; it is done when it is idle again", async (_name, more) => {
    const message = (text: string): object => ({ messageId: "m-2", content: [{ type: "text", text }] });
    const steps = [
      update("agent_message_chunk", { messageId: "m-2", content: { type: "text", text: "I bui" } }),
      update("agent_message", message("I build.")),
      update("tool_call_update", { ...TOOL, status: "in_progress" }),
      update("terminal_output_chunk", { terminalId: "x", data: "" }),
      update("tool_call_update", { toolCallId: "t1", status: "completed" }),
      update("tool_call_update", { ...TOOL, status: "completed" }),
      update("usage_update", { used: 10, size: 100, cost: { amount: 0.25, currency: "USD" } }),
      update("agent_message", { ...message("Built."), messageId: "m-3" }),
    ];
    const { outcome, events } = await runInSandbox(
      place.sandbox,
      ask([...steps, { stop: "end_turn" }], {}, { ...V2, ...more }),
    );
    expect(outcome).toMatchObject({
      status: "success",
      nodes: [
        { output: "Built.", agent: { turns: 2, sessionId: "session-1", costUsd: 0.25, terminalReason: "end_turn" } },
      ],
    });
    expect(only(events, "agent.message")).toMatchObject([{ text: "I build." }, { text: "Built." }]);
    expect(only(events, "agent.tool_call")).toMatchObject([{ tool: "shell", summary: "make" }]);
    expect(only(events, "agent.tool_result")).toMatchObject([{ tool: "shell", isError: false }]);
  });

  test("is permitted what it asks for, and gets its model and its servers as it wants them", async () => {
    const session = {
      configOptions: [{ configId: "m", category: "model", options: [{ value: "large", name: "Large" }] }],
    };
    const options = [{ optionId: "yes", name: "Yes", kind: "allow_once" }];
    const asking = { title: "Build?", subject: { type: "tool_call", toolCall: TOOL }, options };
    const spec = (can: object): BlueprintSpec =>
      ask(
        [{ call: "session/request_permission", params: asking }, { tellServers: true }],
        { model: "large", mcp: { one: { command: ["node", "s.mjs"] } } },
        { ...V2, session, can },
      );
    const { outcome, events } = await runInSandbox(place.sandbox, spec({ session: { mcp: { stdio: {} } } }));
    expect(JSON.parse(outcome.nodes[0]?.output ?? "")).toEqual([
      { outcome: { outcome: "selected", optionId: "yes" } },
      [{ type: "stdio", name: "one", command: "/usr/bin/env", args: ["node", "s.mjs"], env: [] }],
    ]);
    expect(only(events, "agent.tool_call")).toMatchObject([{ tool: "shell", summary: "make" }]);
    const without = await runInSandbox(place.sandbox, spec({ session: {} }));
    expect(without.outcome.nodes[0]?.output).toBe("it starts no MCP servers, which the node declares");
  });

  test("continues its session", async () => {
    const nodes = ["first", "second"].map((id) => ({
      ...ask([], {}, V2).nodes[0],
      id,
      ...(id === "second" && { continue: "first" }),
    })) as BlueprintSpec["nodes"];
    const { outcome } = await runInSandbox(place.sandbox, { name: "two", nodes });
    expect(outcome).toMatchObject({ status: "success", nodes: [{}, { agent: { sessionId: "session-1" } }] });
  });

  test("is asked to stop at a limit", async () => {
    await place.sandbox.remove("cancelled.txt", { recursive: true }).catch(() => undefined);
    const { outcome } = await runInSandbox(place.sandbox, ask([{ hang: true }], { limits: { wall: 4_000 } }, V2));
    expect(outcome).toMatchObject({ status: "limit" });
    expect(await place.sandbox.readFile("cancelled.txt")).toBe("cancelled\n");
  });
});

describe("a failure of an agent that speaks ACP", () => {
  test.each([
    ["an error with a status", [{ error: { code: 429, message: "billing" } }], {}, "rate_limit"],
    ["an error without one", [{ error: { code: -32603, message: "401 billing" } }], {}, "agent_error"],
    ["a missing login", [], { refuse: { code: -32000, message: "log in first" } }, "unauthenticated"],
    ["a refusal", [{ stop: "refusal" }], {}, "refused"],
    ["an exit", [{ exit: 3 }], {}, "no_result"],
    ["another version of the protocol", [], { version: 3 }, "agent_error"],
    ["an agent that claims version 2 and does not speak it", [], { version: 2 }, "agent_error"],
    ["an error of version 2", [{ error: { code: 529, message: "billing" } }], { only: 2 }, "rate_limit"],
    ["a refusal of version 2", [{ stop: "refusal" }], { only: 2 }, "refused"],
    ["a line without end", [{ long: 5 * 1024 * 1024 }], {}, "agent_error"],
  ])("%s is classified by its fields", async (_name, steps, options, failure) => {
    const { outcome } = await runInSandbox(place.sandbox, ask(steps, {}, options));
    expect(outcome.nodes[0]).toMatchObject({ status: "failure", agent: { failure } });
  });

  test("is told with the details that the agent gives", async () => {
    const error = { code: -32603, message: "Internal error", data: { details: "No previous sessions found." } };
    const { outcome } = await runInSandbox(place.sandbox, ask([{ error }]));
    expect(outcome.nodes[0]?.error?.message).toBe("Internal error: No previous sessions found.");
  });

  test("no flood of requests is served: beyond 64 open ones each gets an error", async () => {
    const steps = [
      { call: "terminal/create", params: { command: "until [ -e go ]; do sleep 0.05; done" } },
      { flood: 70, refused: 6 },
    ];
    expect(await answersTo(steps)).toEqual([{ terminalId: "terminal-1" }, 6]);
  });
});

describe("a limit", () => {
  test("ends an agent that speaks ACP, which is asked to stop first, and the terminals that it left", async () => {
    const steps = [{ call: "terminal/create", params: { command: "exec sleep 7654321" } }, { hang: true }];
    const spec = ask(steps, { limits: { wall: 4_000 } }, { slow: 3_000 });
    const { outcome } = await runInSandbox(place.sandbox, spec);
    expect(outcome).toMatchObject({ status: "limit", nodes: [{ status: "limit" }] });
    expect(await place.sandbox.readFile("cancelled.txt")).toBe("cancelled\n");
    const terminals = (await place.sandbox.processes()).filter(({ argv }) => argv.includes("exec sleep 7654321"));
    expect(terminals.map(({ state }) => state)).toEqual(["ended"]);
  });
});
