import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Options, query, type SDKMessage } from "@anthropic-ai/claude-agent-sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createSandboxTools, spawnInSandbox } from "../../src/adapters/claude-agent-sdk.js";
import { egressInternals } from "../../src/sandbox/egress/open-egress.js";
import type { Sandbox } from "../../src/sandbox/types.js";
import { listSandboxes, openSandbox } from "../../src/sandbox.js";
import { type ModelServer, startModelServer, type Turn } from "../agents/model-server.js";
import { onEachBackend } from "./backends.js";

/** Claude Code as the SDK brings it. */
const CLAUDE = fileURLToPath(
  new URL(`./packages/node_modules/@anthropic-ai/claude-agent-sdk-linux-${process.arch}/claude`, import.meta.url),
);
const GATEWAY = "model.test";
const KEY = "sk-ant-key-for-the-test";
const BUGGY = {
  "sum.sh": "echo $(($1 - $2))\n",
  "test.sh": '[ "$(sh sum.sh 2 3)" = 5 ] && echo green || { echo red; exit 1; }\n',
};

let model: ModelServer;
let home: string;
beforeAll(async () => {
  model = await startModelServer();
  home = mkdtempSync(join(tmpdir(), "glovebox-claude-"));
  egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: (address) => address === "127.0.0.1" };
});
afterAll(async () => {
  delete egressInternals.route;
  await model[Symbol.asyncDispose]();
  rmSync(home, { recursive: true, force: true });
});

const use = (name: string, input: Record<string, unknown>): Turn => ({ tools: [{ name, input }] });

/** Everything that a query says. */
async function ask(options: Options, prompt = "Repair it."): Promise<SDKMessage[]> {
  const messages: SDKMessage[] = [];
  for await (const message of query({ prompt, options })) messages.push(message);
  return messages;
}

/** What the tools returned, as the model saw it in its last request. */
function results(): string[] {
  const messages = (model.requests.at(-1)?.body["messages"] ?? []) as { content: unknown }[];
  return messages.flatMap(({ content }) =>
    Array.isArray(content)
      ? content.filter(({ type }) => type === "tool_result").map((each) => JSON.stringify(each.content))
      : [],
  );
}

/** Options that are the same wherever Claude Code runs. */
const COMMON: Options = {
  model: "claude-sonnet-4-5",
  permissionMode: "bypassPermissions",
  allowDangerouslySkipPermissions: true,
  settingSources: [],
  persistSession: false,
};

describe("Claude Code in a sandbox", () => {
  const open = async () =>
    await openSandbox({
      backend: "local",
      workDir: "/workspace",
      mounts: [{ source: CLAUDE, target: "/opt/claude" }],
      network: { allow: [`plain://${GATEWAY}:${model.port}`] },
      env: {
        ANTHROPIC_API_KEY: KEY,
        ANTHROPIC_BASE_URL: `http://${GATEWAY}:${model.port}`,
        CLAUDE_CODE_MAX_RETRIES: "1",
      },
    });

  const inside = (sandbox: Sandbox) => spawnInSandbox(sandbox, { executable: "/opt/claude" });

  test("edits a file and runs a test there, and sees nothing of this process", async ({ skip }) => {
    if (!existsSync(CLAUDE)) return skip("its program is not installed: npm run test:adapters");
    await using sandbox = await open();
    await sandbox.writeFiles(BUGGY);
    model.play([
      use("Bash", { command: "sh test.sh; env", description: "test" }),
      use("Read", { file_path: "/workspace/sum.sh" }),
      use("Edit", { file_path: "/workspace/sum.sh", old_string: "$1 - $2", new_string: "$1 + $2" }),
      use("Bash", { command: "sh test.sh", description: "test" }),
      { text: "done" },
    ]);
    const env = { ...process.env, SECRET_OF_THE_HOST: "must-stay-outside", CLAUDE_CODE_SOMETHING: "passed" };
    const messages = await ask({ ...COMMON, env, spawnClaudeCodeProcess: inside(sandbox) });
    expect(messages.at(-1)).toMatchObject({ type: "result", subtype: "success", result: "done" });
    expect(model.faults).toEqual([]);
    const [first, , , last] = results();
    expect(first).toContain("red");
    expect(first).toContain("CLAUDE_CODE_SOMETHING=passed");
    expect(first).not.toContain("must-stay-outside");
    expect(last).toContain("green");
    expect(await sandbox.readFile("sum.sh")).toBe("echo $(($1 + $2))\n");
    expect(messages[0]).toMatchObject({ type: "system", subtype: "init", cwd: "/workspace" });
  });

  test("is ended with everything that it started when the query is aborted", async ({ skip }) => {
    if (!existsSync(CLAUDE)) return skip("its program is not installed: npm run test:adapters");
    await using sandbox = await open();
    model.play([use("Bash", { command: "touch started; sleep 1000", description: "wait" })]);
    const abortController = new AbortController();
    const asking = ask({ ...COMMON, abortController, spawnClaudeCodeProcess: inside(sandbox) });
    await expect.poll(async () => await sandbox.exists("started")).toBe(true);
    abortController.abort();
    await expect(asking).rejects.toThrow(/abort/i);
    await expect.poll(async () => (await sandbox.processes()).filter(({ state }) => state === "running")).toEqual([]);
    const { stdout } = await sandbox.shell("for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f; echo; done");
    expect(stdout).not.toContain("sleep 1000");
  });

  test("that is not there is an error of the query", async () => {
    await using sandbox = await openSandbox({ backend: "local" });
    const spawn = spawnInSandbox(sandbox, { executable: "/no/such/claude" });
    await expect(ask({ ...COMMON, spawnClaudeCodeProcess: spawn })).rejects.toThrow();
  });
});

onEachBackend(({ open }) => {
  test("Claude Code outside uses the tools of a sandbox, and no others", async ({ skip }) => {
    if (!existsSync(CLAUDE)) return skip("its program is not installed: npm run test:adapters");
    const sandbox = await open({ workDir: "/workspace" });
    await sandbox.writeFiles(BUGGY);
    model.play([
      use("mcp__glovebox__bash", { command: "pwd; sh test.sh" }),
      use("mcp__glovebox__read", { path: "sum.sh" }),
      use("mcp__glovebox__edit", { path: "sum.sh", old: "$1 - $2", new: "$1 + $2" }),
      use("mcp__glovebox__write", { path: "/tmp/note", content: "written" }),
      use("mcp__glovebox__bash", { command: "sh test.sh; cat /tmp/note" }),
      { text: "done" },
    ]);
    const env = {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      ANTHROPIC_API_KEY: KEY,
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${model.port}`,
      CLAUDE_CODE_MAX_RETRIES: "1",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      IS_SANDBOX: "1",
    };
    const messages = await ask({ ...COMMON, cwd: home, env, ...createSandboxTools(sandbox) });
    expect(messages.at(-1)).toMatchObject({ type: "result", subtype: "success", result: "done" });
    expect(model.faults).toEqual([]);
    expect(messages[0]).toMatchObject({
      tools: ["bash", "edit", "read", "write"].map((name) => `mcp__glovebox__${name}`),
    });
    const [red, text, , , green] = results();
    expect(red).toContain("exit code 1\\n/workspace\\nred");
    expect(text).toContain("$1 - $2");
    expect(green).toContain("exit code 0\\ngreen\\nwritten");
    expect(await listSandboxes()).toHaveLength(1);
  });
});
