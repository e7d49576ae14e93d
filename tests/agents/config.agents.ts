import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BlueprintSpec, NodeSpec } from "../../src/harness/types.js";
import { egressInternals } from "../../src/sandbox/egress/open-egress.js";
import { runInSandbox, useSandbox } from "../support/harness/engine-run.js";
import type { ToolCall } from "./model-server/turn.js";
import { type ModelRequest, startModelServer } from "./model-server.js";

const PROGRAMS = fileURLToPath(new URL("./programs", import.meta.url));
const INSTALLED = join(PROGRAMS, "node_modules");
const model = await startModelServer();
const gateway = `http://model.test:${model.port}`;
const KEYS = {
  ANTHROPIC_API_KEY: "sk-ant-test-key",
  OPENAI_API_KEY: "openai-test-key",
  GEMINI_API_KEY: "gemini-test-key",
  COPILOT_PROVIDER_API_KEY: "byok-test-key",
  NOTES_TOKEN: "token-of-the-notes",
};

interface Cli {
  readonly agent: string;
  readonly program: string;
  readonly file: string;
  readonly model?: string;
  readonly command?: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** How its model calls the tool, where the tool is not among those that a request lists. */
  readonly call?: (text: string) => ToolCall;
}

const OPENCODE = JSON.stringify({
  provider: {
    scripted: {
      npm: "@ai-sdk/openai-compatible",
      options: { baseURL: `${gateway}/v1`, apiKey: "{env:OPENAI_API_KEY}" },
      models: { m: { name: "m" } },
    },
  },
});

const CLIS: readonly Cli[] = [
  {
    ...{ agent: "claude-code", program: "claude", model: "claude-sonnet-4-5" },
    file: join(INSTALLED, "@anthropic-ai", "claude-code", "bin", "claude.exe"),
    env: { ANTHROPIC_BASE_URL: gateway },
    call: (text) => ({ name: "mcp__notes__write_note", input: { text } }),
  },
  {
    ...{ agent: "codex", program: "codex" },
    file: join(INSTALLED, "@openai", "codex", "bin", "codex.js"),
    env: { OPENAI_BASE_URL: `${gateway}/v1` },
    // Its newer models write programs that call the tools.
    call: (text) => ({ name: "exec", input: `text(await tools.mcp__notes__write_note({ text: "${text}" }));` }),
  },
  {
    ...{ agent: "opencode", program: "opencode", model: "scripted/m" },
    file: join(INSTALLED, "opencode-linux-x64-baseline", "bin", "opencode"),
    env: { OPENCODE_CONFIG_CONTENT: OPENCODE },
  },
  {
    ...{ agent: "gemini-cli", program: "gemini", model: "gemini-2.5-pro" },
    file: join(INSTALLED, "@google", "gemini-cli", "bundle", "gemini.js"),
    env: { GOOGLE_GEMINI_BASE_URL: gateway },
  },
  {
    ...{ agent: "copilot", program: "copilot", model: "gpt-5" },
    file: join(INSTALLED, "@github", "copilot-linux-x64", "copilot"),
    env: { COPILOT_PROVIDER_BASE_URL: `${gateway}/v1`, COPILOT_OFFLINE: "true" },
  },
  {
    ...{ agent: "acp", program: "opencode", model: "scripted/m" },
    command: ["opencode", "acp"],
    file: join(INSTALLED, "opencode-linux-x64-baseline", "bin", "opencode"),
    env: { OPENCODE_CONFIG_CONTENT: OPENCODE },
  },
];

const place = useSandbox(() => {
  egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: (address) => address === "127.0.0.1" };
  return {
    network: { allow: [`plain://model.test:${model.port}`] },
    mounts: [{ source: PROGRAMS }, { source: dirname(process.execPath) }],
    env: { PATH: `/tmp/bin:${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin` },
  };
});

beforeAll(async () => {
  const links = CLIS.slice(0, -1).map(({ program, file }) => `ln -s '${file}' ${program}`);
  const script = ["mkdir -p /tmp/bin", "cd /tmp/bin", ...links].join(" && ");
  await place.sandbox.exec({ argv: ["/bin/sh", "-c", script], check: true });
});
afterAll(async () => {
  delete egressInternals.route;
  await model[Symbol.asyncDispose]();
});

/** The call of the server's tool, by the name that the program gives it. */
function callIn({ tools }: ModelRequest, text: string): ToolCall | undefined {
  const name = tools.find((each) => each.includes("write_note"));
  return name === undefined ? undefined : { name, input: { text } };
}

describe("an MCP server that a blueprint declares", () => {
  test.for(CLIS)("is started by the real $agent, and its tool is called", async (cli, { skip }) => {
    const { agent, file, command } = cli;
    if (!existsSync(file)) skip("its package is not installed: npm ci --prefix tests/agents/programs");
    const notes = `notes-${agent}.jsonl`;
    let hasCalled = false;
    model.play((request) => {
      const call = cli.call?.(`by ${agent}`) ?? callIn(request, `by ${agent}`);
      if (call === undefined || hasCalled) return { text: "Done." };
      hasCalled = true;
      return { tools: [call] };
    });
    const node = {
      ...{ kind: "agent", id: "work", agent, prompt: "Write a note.", retry: { max: 0 } },
      ...(command !== undefined && { command }),
      ...(cli.model !== undefined && { model: cli.model }),
      env: cli.env,
      secrets: ["NOTES_TOKEN", ...(agent === "acp" ? ["OPENAI_API_KEY"] : [])],
      mcp: { notes: { command: ["node", join(PROGRAMS, "mcp-server.mjs"), notes], env: { NOTES_LEVEL: "high" } } },
      limits: { wall: 120_000 },
    } as NodeSpec;
    const { outcome } = await runInSandbox(place.sandbox, { name: "mcp", nodes: [node] } as BlueprintSpec, {
      secrets: KEYS,
    });
    expect(outcome.nodes[0]).toMatchObject({ status: "success", output: "Done." });
    expect(JSON.parse((await place.sandbox.readFile(notes)) ?? "null")).toEqual({
      text: `by ${agent}`,
      level: "high",
      token: KEYS.NOTES_TOKEN,
    });
  });
});
