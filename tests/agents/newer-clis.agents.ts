import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BlueprintSpec, NodeSpec } from "../../src/harness/types.js";
import { egressInternals } from "../../src/sandbox/egress/open-egress.js";
import { only, runInSandbox, useSandbox } from "../support/harness/engine-run.js";
import { startModelServer, type Turn } from "./model-server.js";

const PROGRAMS = fileURLToPath(new URL("./programs", import.meta.url));
const INSTALLED = join(PROGRAMS, "node_modules");
const FILES = {
  opencode: join(INSTALLED, "opencode-linux-x64-baseline", "bin", "opencode"),
  gemini: join(INSTALLED, "@google", "gemini-cli", "bundle", "gemini.js"),
  copilot: join(INSTALLED, "@github", "copilot-linux-x64", "copilot"),
  acp: join(INSTALLED, "@agentclientprotocol", "sdk", "package.json"),
};
const model = await startModelServer();
const gateway = `http://model.test:${model.port}`;
const KEYS = {
  OPENAI_API_KEY: "openai-test-key",
  GEMINI_API_KEY: "gemini-test-key",
  COPILOT_PROVIDER_API_KEY: "byok-test-key",
};

const OPENCODE = JSON.stringify({
  model: "scripted/m",
  provider: {
    scripted: {
      npm: "@ai-sdk/openai-compatible",
      options: { baseURL: `${gateway}/v1`, apiKey: "{env:OPENAI_API_KEY}" },
      models: { m: { name: "m", cost: { input: 1, output: 2 } } },
    },
  },
});

/** Each agent: what its node needs, and the tool that writes a file. */
const CLIS = {
  opencode: {
    agent: "opencode",
    node: { model: "scripted/m", env: { OPENCODE_CONFIG_CONTENT: OPENCODE } },
    write: (path: string, content: string) => ({ name: "write", input: { filePath: path, content } }),
  },
  gemini: {
    agent: "gemini-cli",
    node: { model: "gemini-2.5-pro", env: { GOOGLE_GEMINI_BASE_URL: gateway } },
    write: (path: string, content: string) => ({ name: "write_file", input: { file_path: path, content } }),
  },
  copilot: {
    agent: "copilot",
    node: { model: "gpt-5", env: { COPILOT_PROVIDER_BASE_URL: `${gateway}/v1`, COPILOT_OFFLINE: "true" } },
    write: (path: string, content: string) => ({ name: "create", input: { path, file_text: content } }),
  },
};
type Cli = keyof typeof CLIS;

const place = useSandbox(() => {
  egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: (address) => address === "127.0.0.1" };
  return {
    network: { allow: [`plain://model.test:${model.port}`] },
    mounts: [{ source: PROGRAMS }, { source: dirname(process.execPath) }],
    env: { PATH: `/tmp/bin:${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin` },
  };
});

beforeAll(async () => {
  const script = `mkdir -p /tmp/bin && cd /tmp/bin &&
    ln -s '${FILES.opencode}' opencode && ln -s '${FILES.gemini}' gemini && ln -s '${FILES.copilot}' copilot`;
  await place.sandbox.exec({ argv: ["/bin/sh", "-c", script], check: true });
});
afterAll(async () => {
  delete egressInternals.route;
  await model[Symbol.asyncDispose]();
});

function nodeOf(cli: Cli, more: Partial<NodeSpec> = {}): NodeSpec {
  const { agent, node } = CLIS[cli];
  return {
    kind: "agent",
    id: "work",
    agent,
    prompt: "Write the file.",
    retry: { max: 0 },
    ...node,
    ...more,
  } as NodeSpec;
}

const run = (...nodes: NodeSpec[]): ReturnType<typeof runInSandbox> =>
  runInSandbox(place.sandbox, { name: "agents", nodes } as BlueprintSpec, { secrets: KEYS });

/** The turns of the conversation; a request without tools is for a title or the like. */
function play(...turns: Turn[]): void {
  let at = 0;
  model.play((request) =>
    request.tools.length === 0 ? { text: "a title" } : (turns[at++] ?? { text: "no more turns" }),
  );
}

describe.each(Object.keys(CLIS) as Cli[])("the real %s", (cli) => {
  test("edits a file by a tool call, and continues its session in the next node", async ({ skip }) => {
    if (!existsSync(FILES[cli])) skip("its package is not installed: npm ci --prefix tests/agents/programs");
    const path = join(place.sandbox.workDir, `${cli}.txt`);
    const usage = { input: 1000, output: 100 };
    play(
      { tools: [CLIS[cli].write(path, "by hand\n")], usage },
      { text: "Written.", usage },
      { text: "Again.", usage },
    );
    const { outcome, events } = await run(
      nodeOf(cli),
      nodeOf(cli, { id: "more", prompt: "Say it again.", continue: "work" } as never),
    );
    expect(outcome.nodes).toMatchObject([
      { status: "success", output: "Written.", agent: { turns: 2 } },
      { status: "success", output: "Again.", agent: { turns: 1 } },
    ]);
    expect(await place.sandbox.readFile(`${cli}.txt`)).toBe("by hand\n");
    expect(only(events, "agent.tool_call")).toMatchObject([{ tool: CLIS[cli].write("", "").name, summary: path }]);
    expect(outcome.nodes.map(({ agent }) => agent?.usage)).toEqual(
      cli === "copilot"
        ? [undefined, undefined]
        : [
            { input: 2000, output: 200, cacheRead: 0, cacheWrite: 0 },
            { input: 1000, output: 100, cacheRead: 0, cacheWrite: 0 },
          ],
    );
    // The second prompt came with the first one.
    expect(model.requests.at(-1)?.texts.join("\n")).toMatch(/Write the file\.[\s\S]*Say it again\./);
    if (cli === "opencode") expect(outcome.nodes[0]?.agent?.costUsd).toBeCloseTo(0.0024, 6);
  });

  test("fails without a login by the status of the answer", async ({ skip }) => {
    if (!existsSync(FILES[cli])) skip("its package is not installed: npm ci --prefix tests/agents/programs");
    const refused: Turn = { status: 401, message: "the billing module" };
    model.play(() => refused);
    const { outcome } = await run(nodeOf(cli));
    expect(outcome.nodes[0]).toMatchObject({ status: "failure", agent: { failure: "unauthenticated" } });
  });

  test("whose model hangs is ended at a limit, with all that it started", async ({ skip }) => {
    if (!existsSync(FILES[cli])) skip("its package is not installed: npm ci --prefix tests/agents/programs");
    const before = new Set((await place.sandbox.processes()).map(({ id }) => id));
    model.play(() => ({ text: "I think about it for a long time.", stop: "hang" }));
    const { outcome } = await run(nodeOf(cli, { limits: { wall: 20_000 } } as never));
    expect(outcome).toMatchObject({ status: "limit", limitsHit: [{ limit: "wall" }] });
    expect(model.requests.length).toBeGreaterThan(0);
    const own = (await place.sandbox.processes()).filter(({ id }) => !before.has(id));
    expect(own.map(({ state }) => state)).toEqual(["ended"]);
  });
});

describe("by ACP", () => {
  const acp = (command: string[], cli: "opencode" | "gemini"): NodeSpec =>
    nodeOf(cli, {
      agent: "acp",
      command,
      secrets: Object.keys(KEYS),
      ...(cli === "gemini" && { model: undefined }),
    } as never);

  test.each([
    ["opencode", ["opencode", "acp"]],
    ["gemini", ["gemini", "--acp", "--skip-trust", "-m", "gemini-2.5-pro"]],
  ] as const)("the real %s edits a file", async (cli, command) => {
    const path = join(place.sandbox.workDir, `${cli}-acp.txt`);
    const settings = '{"security":{"auth":{"selectedType":"gemini-api-key"}}}';
    const script = `mkdir -p ~/.gemini && echo '${settings}' > ~/.gemini/settings.json`;
    await place.sandbox.exec({ argv: ["/bin/sh", "-c", script], check: true });
    // Gemini CLI 0.61.0 can't make a new file by its client: it takes the answer that there is none for a failure.
    await place.sandbox.writeFile(path, "before\n");
    play({ tools: [CLIS[cli].write(path, "by ACP\n")] }, { text: "Written." });
    const { outcome, events } = await run(acp([...command], cli));
    expect(outcome.nodes[0]).toMatchObject({ status: "success", output: "Written." });
    expect(only(events, "agent.tool_result")).toMatchObject([{ isError: false }]);
    expect(await place.sandbox.readFile(`${cli}-acp.txt`)).toBe("by ACP\n");
  });

  test("an agent that is written with the SDK uses the files, the terminal and the permission", async ({ skip }) => {
    if (!existsSync(FILES.acp)) skip("its package is not installed: npm ci --prefix tests/agents/programs");
    const command = ["node", join(PROGRAMS, "sdk-agent.mjs")];
    const { outcome } = await run({ kind: "agent", id: "work", agent: "acp", command, prompt: "go" } as NodeSpec);
    expect(JSON.parse(outcome.nodes[0]?.output ?? "")).toEqual({
      outcome: { outcome: "selected", optionId: "yes" },
      content: "by the SDK\n",
      exitCode: 0,
      output: "by the SDK\n",
    });
  });
});
