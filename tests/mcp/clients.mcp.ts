import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AGENT_FILES, whyNoAgent } from "../agents/agent-bench.js";
import { type ModelServer, startModelServer, type Turn } from "../agents/model-server.js";
import { type Bench, createBench } from "../support/cli.js";
import { NODE_24 } from "../support/run/runtimes.js";

let bench: Bench;
let model: ModelServer;
beforeAll(async () => {
  bench = createBench();
  model = await startModelServer();
});
afterAll(async () => {
  await model?.[Symbol.asyncDispose]();
  bench?.remove();
});

/** Nothing but the loopback can be reached: everything else goes to a port at which nobody listens. */
const NOWHERE = "http://127.0.0.1:9";
const ALONE = {
  ...{ HTTPS_PROXY: NOWHERE, HTTP_PROXY: NOWHERE, ALL_PROXY: NOWHERE, NO_PROXY: "127.0.0.1,localhost" },
  ...{ CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1", DISABLE_TELEMETRY: "1", CI: "1" },
};

interface ClientProgram {
  readonly client: "claude-code" | "codex";
  readonly program: "claude" | "codex";
  args(model: ModelServer): string[];
  env(model: ModelServer): Record<string, string>;
}

const PROGRAMS: readonly ClientProgram[] = [
  {
    client: "claude-code",
    program: "claude",
    args: () => ["-p", "--output-format", "json", "--model", "claude-sonnet-4-5", "--allowedTools", "mcp__glovebox"],
    env: ({ port }) => ({
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`,
      ANTHROPIC_API_KEY: "sk-ant-key-for-the-test",
    }),
  },
  {
    client: "codex",
    program: "codex",
    args: ({ port }) => [
      ...[
        "exec",
        "--json",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "-c",
        'model_provider="gateway"',
        "-c",
      ],
      `model_providers.gateway={name="gateway",base_url="http://127.0.0.1:${port}/v1",env_key="CODEX_API_KEY",wire_api="responses",supports_websockets=false}`,
      "-",
    ],
    env: () => ({ CODEX_API_KEY: "sk-key-for-the-test" }),
  },
];

describe.each(PROGRAMS)("the real $client", ({ client, program, args, env }) => {
  test("finds the server that was installed, and runs a command in its sandbox", async ({ skip }) => {
    const reason = whyNoAgent(program);
    if (reason !== undefined) return skip(reason);
    const folder = join(bench.path, client);
    mkdirSync(folder);
    expect(await bench.run(["mcp", "install", "--client", client])).toMatchObject({ code: 0 });
    let offered: readonly string[] = [];
    model.play((request): Turn => {
      const tool = request.tools.find((name) => /glovebox.*exec/.test(name));
      if (tool === undefined) return { text: "a title" };
      offered = request.tools;
      if (request.texts.some((text) => text.includes("exit code 0"))) return { text: "It is done." };
      return { text: "I run it.", tools: [{ name: tool, input: { command: "echo $((40 + 2)) in $(pwd)" } }] };
    });
    const output = await runIn(folder, [AGENT_FILES[program] ?? "", ...args(model)], env(model));
    expect(model.requests.flatMap(({ texts }) => texts).join("\n"), output).toContain("42 in /workspace");
    expect(offered.filter((name) => name.includes("glovebox")).length).toBeGreaterThanOrEqual(7);
    expect(output).toContain("It is done.");
    expect(await bench.settled()).toEqual([]);
  });
});

/** Runs a program in a folder, with a home of its own and a prompt on its standard input, and gives what it printed. */
async function runIn(cwd: string, [file = "", ...args]: string[], env: Record<string, string>): Promise<string> {
  const words = file.endsWith("js") ? [NODE_24.program, file, ...args] : [file, ...args];
  const child = spawn(words[0] ?? "", words.slice(1), { cwd, env: { ...bench.env, ...ALONE, ...env } });
  const limit = setTimeout(() => child.kill("SIGKILL"), 120_000);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString("utf8");
    });
  }
  child.stdin.end("Say what forty plus two is.");
  await new Promise((resolve) => child.once("close", resolve));
  clearTimeout(limit);
  return output;
}
