import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { installPackage, whyNoPackage } from "../support/run/installed-package.js";
import { SET_UP_LIMIT } from "../support/run/set-up-limit.js";

const HINTS: Readonly<Record<string, string>> = {
  adk: "npm install @google/adk",
  "claude-agent-sdk": "npm install @anthropic-ai/claude-agent-sdk",
  computesdk: "npm install @computesdk/provider",
  deepagents: "npm install deepagents",
  langchain: "npm install @langchain/core",
  mastra: "npm install @mastra/core",
  "openai-agents": "npm install @openai/agents-core",
};

let place: string;
beforeAll(() => {
  const reason = whyNoPackage();
  if (reason !== undefined) throw new Error(reason);
  ({ place } = installPackage());
}, SET_UP_LIMIT);

test("an adapter without its framework says what to install", async () => {
  const names = JSON.stringify([...Object.keys(HINTS), "ai-sdk"]);
  const program = `const found = {};
    for (const name of ${names}) {
      found[name] = await import("glovebox/" + name).then(Object.keys, ({ code, hint }) => ({ code, hint }));
    }
    console.log(JSON.stringify(found));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], {
    cwd: place,
  });
  const missing = Object.entries(HINTS).map(([name, hint]) => [name, { code: "missing_dependency", hint }] as const);
  expect(JSON.parse(stdout)).toEqual({
    ...Object.fromEntries(missing),
    // Nothing of the AI SDK is loaded.
    "ai-sdk": ["createSandboxProvider", "createSandboxSession", "createSandboxTools"],
  });
});

test("the package declares every framework as an optional peer", async () => {
  const { peerDependencies, peerDependenciesMeta } = (
    await import(fileURLToPath(new URL("../../package.json", import.meta.url)), { with: { type: "json" } })
  ).default as { peerDependencies: Record<string, string>; peerDependenciesMeta: Record<string, object> };
  for (const name of [
    ...Object.values(HINTS).map((hint) => hint.replace("npm install ", "")),
    "ai",
    "@ai-sdk/harness",
  ]) {
    expect(peerDependencies[name]).toMatch(/^>=\d/);
    expect(peerDependenciesMeta[name]).toEqual({ optional: true });
  }
});
