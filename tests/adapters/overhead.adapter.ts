import { afterAll, beforeAll, expect, test } from "vitest";
import { GloveboxEnvironment } from "../../src/adapters/adk.js";
import { createSandboxSession, createSandboxTools } from "../../src/adapters/ai-sdk.js";
import { glovebox } from "../../src/adapters/computesdk.js";
import { GloveboxSandbox } from "../../src/adapters/deepagents.js";
import { createSandboxTools as createLangChainTools } from "../../src/adapters/langchain.js";
import type { Sandbox } from "../../src/sandbox/types.js";
import { openSandbox } from "../../src/sandbox.js";
import { createScratch, type Scratch } from "../support/scratch.js";

const ROUNDS = 60;
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
  const added = median(times.adapter) - median(times.own);
  if (process.env["GLOVEBOX_ADAPTER_TIMES"] === "1") console.log(`${name}: ${added.toFixed(3)} ms`);
  expect(added).toBeLessThan(1);
});

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
