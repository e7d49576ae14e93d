import { afterAll, beforeAll, expect, test } from "vitest";
import { GloveboxEnvironment } from "../../src/adapters/adk.js";
import { createSandboxSession, createSandboxTools } from "../../src/adapters/ai-sdk.js";
import { createSandboxTools as createClaudeTools } from "../../src/adapters/claude-agent-sdk.js";
import { glovebox } from "../../src/adapters/computesdk.js";
import { GloveboxSandbox } from "../../src/adapters/deepagents.js";
import { createSandboxTools as createLangChainTools } from "../../src/adapters/langchain.js";
import { GloveboxSandbox as MastraSandbox } from "../../src/adapters/mastra.js";
import { GloveboxSandboxClient } from "../../src/adapters/openai-agents.js";
import type { Sandbox } from "../../src/sandbox/types.js";
import { openSandbox } from "../../src/sandbox.js";
import { createScratch, type Scratch } from "../support/scratch.js";

const ROUNDS = 100;
let scratch: Scratch;
let sandbox: Sandbox;
beforeAll(async () => {
  scratch = createScratch();
  sandbox = await openSandbox({ backend: "local" });
});
afterAll(async () => {
  await sandbox.teardown();
  scratch.remove();
});

/** The call that each adapter has for a command, and how it runs one. */
const ADAPTERS: Readonly<Record<string, () => Promise<(command: string) => Promise<unknown>>>> = {
  "adk's execute": async () => {
    const environment = new GloveboxEnvironment({ sandbox });
    await environment.initialize();
    return async (command) => await environment.execute(command);
  },
  "ai-sdk's run": async () => {
    const session = createSandboxSession(sandbox);
    return async (command) => await session.run({ command });
  },
  "ai-sdk's bash": async () => {
    const { bash } = createSandboxTools(sandbox);
    return async (command) => await bash.execute({ command }, {});
  },
  "claude-agent-sdk's bash": async () => await connectTo(createClaudeTools(sandbox).mcpServers["glovebox"]?.instance),
  "computesdk's runCommand": async () => {
    const provider = glovebox({ backend: "local" }) as unknown as {
      sandbox: { create(): Promise<{ runCommand(command: string): Promise<unknown>; destroy(): Promise<void> }> };
    };
    const own = await provider.sandbox.create();
    closing.push(async () => await own.destroy());
    return async (command) => await own.runCommand(command);
  },
  "deepagents' execute": async () => {
    const backend = await GloveboxSandbox.create({ sandbox });
    return async (command) => await backend.execute(command);
  },
  "langchain's bash": async () => {
    const [bash] = createLangChainTools(sandbox);
    return async (command) => await bash?.invoke({ command });
  },
  "mastra's executeCommand": async () => {
    const own = new MastraSandbox({ backend: "local" });
    closing.push(async () => await own._destroy());
    return async (command) => await own.executeCommand(command);
  },
  "openai-agents' execCommand": async () => {
    const session = await new GloveboxSandboxClient({ backend: "local" }).create();
    closing.push(async () => await session.close());
    return async (cmd) => await session.execCommand({ cmd });
  },
};
const closing: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
});

test.for(Object.entries(ADAPTERS))("%s adds less than a millisecond to the sandbox's own", async ([name, make]) => {
  const run = await make();
  const bash = (await sandbox.shell("command -v bash || echo /bin/sh")).stdout.trim();
  const times = { own: [] as number[], adapter: [] as number[] };
  const measure = async (kind: keyof typeof times, work: () => Promise<unknown>): Promise<void> => {
    const startedAt = performance.now();
    await work();
    times[kind].push(performance.now() - startedAt);
  };
  for (let round = 0; round < ROUNDS; round++) {
    await measure("own", () => sandbox.exec({ argv: [bash, "-c", "true"] }));
    await measure("adapter", () => run("true"));
  }
  const added = usual(times.adapter) - usual(times.own);
  if (process.env["GLOVEBOX_ADAPTER_TIMES"] === "1") console.log(`${name}: ${added.toFixed(3)} ms`);
  expect(added).toBeLessThan(1);
});

/** A client of a server in this process that calls its `bash`, without what a real one would add. */
async function connectTo(server: unknown): Promise<(command: string) => Promise<unknown>> {
  interface Transport {
    onmessage?(message: object): void;
    start(): Promise<void>;
    close(): Promise<void>;
    send(message: { id?: number }): Promise<void>;
  }
  const waiting = new Map<number, (message: object) => void>();
  const transport: Transport = {
    start: async () => undefined,
    close: async () => undefined,
    send: async (message) => waiting.get(message.id ?? -1)?.(message),
  };
  await (server as { connect(transport: Transport): Promise<void> }).connect(transport);
  const ask = async (method: string, params: object): Promise<object> =>
    await new Promise((resolve) => {
      const id = waiting.size;
      waiting.set(id, resolve);
      transport.onmessage?.({ jsonrpc: "2.0", id, method, params });
    });
  const clientInfo = { name: "test", version: "1.0.0" };
  await ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
  return async (command) => {
    const answer = await ask("tools/call", { name: "bash", arguments: { command } });
    expect(answer).not.toHaveProperty("error");
  };
}

/** What a call takes that nothing else on the machine holds up: a tenth of them are faster. */
function usual(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 10)] ?? Number.NaN;
}
