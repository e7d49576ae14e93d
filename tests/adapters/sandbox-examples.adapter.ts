// node 22: Mastra declares it
import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const packages = join(root, "tests", "adapters", "packages", "node_modules");

/** What each example prints last. */
const LAST_LINES: Readonly<Record<string, string>> = {
  "claude-agent-sdk": "its tools inside, and itself inside",
  mastra: "called, answered, written",
  "openai-agents": "repaired, stored, resumed",
};
const FRAMEWORK_OF: Readonly<Record<string, string>> = {
  "claude-agent-sdk": "@anthropic-ai/claude-agent-sdk",
  mastra: "@mastra/core",
  "openai-agents": "@openai/agents-core",
};
const BACKEND_SDKS = ["@dagger.io/dagger", "@daytona/sdk", "@vercel/sandbox"];

/** What the adapters make is what the frameworks take. */
const ASSIGNABLE = `import { query } from "@anthropic-ai/claude-agent-sdk";
import { Workspace, type WorkspaceFilesystem, type WorkspaceSandbox } from "@mastra/core/workspace";
import { type SandboxClient, SandboxAgent } from "@openai/agents-core/sandbox";
import { run } from "@openai/agents-core";
import type { Sandbox } from "glovebox";
import { createSandboxTools, spawnInSandbox } from "glovebox/claude-agent-sdk";
import { GloveboxFilesystem, GloveboxSandbox } from "glovebox/mastra";
import { GloveboxSandboxClient } from "glovebox/openai-agents";
declare const sandbox: Sandbox;
export const outside = query({ prompt: "", options: { ...createSandboxTools(sandbox) } });
export const inside = query({ prompt: "", options: { spawnClaudeCodeProcess: spawnInSandbox(sandbox) } });
export const own = new GloveboxSandbox({ backend: "docker", timeout: 1000, onStart: ({ sandbox }) => void sandbox.id });
export const asSandbox: WorkspaceSandbox = own;
export const files: WorkspaceFilesystem = new GloveboxFilesystem({ sandbox: own });
export const workspace = new Workspace({ sandbox: own, filesystem: files });
export const client: SandboxClient<any, any> = new GloveboxSandboxClient({ backend: "docker", exposedPorts: [80] });
export const agent = new SandboxAgent({ name: "a" });
export const ran = run(agent, "", { sandbox: { client: new GloveboxSandboxClient() } });
// @ts-expect-error: the types are not any.
new GloveboxSandbox({ timeout: "long" });
// @ts-expect-error: the types are not any.
new GloveboxSandboxClient({ exposedPorts: 80 });
// @ts-expect-error: the types are not any.
spawnInSandbox(7);
`;

let place: string;
beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), "glovebox-examples-"));
  // Where a user has it: beside the frameworks.
  const modules = join(place, "node_modules");
  mkdirSync(modules);
  for (const name of readdirSync(packages).filter((each) => !each.startsWith("."))) {
    symlinkSync(join(packages, name), join(modules, name));
  }
  symlinkSync(root, join(modules, "glovebox"));
});
afterAll(() => rmSync(place, { recursive: true, force: true }));

test.for(Object.entries(LAST_LINES))("the example of %s finds itself in order", async ([name, lastLine]) => {
  const program = join(place, `${name}.mjs`);
  copyFileSync(join(root, "examples", `${name}.mjs`), program);
  const env = { ...process.env, GLOVEBOX_HOME: join(place, "home"), NODE_OPTIONS: "--preserve-symlinks" };
  const { stdout } = await run(process.execPath, ["--preserve-symlinks-main", program], { cwd: place, env });
  expect(stdout.trim().split("\n").at(-1)).toBe(lastLine);
});

test.for(Object.keys(LAST_LINES))("%s loads its own framework and no other, and no SDK of a backend", async (name) => {
  const hook = `export async function resolve(specifier, context, next) {
      process._rawDebug("asked " + specifier);
      return await next(specifier, context);
    }`;
  const program = `import { register } from "node:module";
    register("data:text/javascript," + encodeURIComponent(${JSON.stringify(hook)}), import.meta.url);
    await import("glovebox/${name}");`;
  const args = ["--preserve-symlinks", "--input-type=module", "-e", program];
  const { stderr } = await run(process.execPath, args, { cwd: place, maxBuffer: 32 * 1024 * 1024 });
  const asked = [...stderr.matchAll(/^asked (.+)$/gm)].map((match) => match[1] ?? "");
  const isAsked = (each: string): boolean => asked.some((it) => it === each || it.startsWith(`${each}/`));
  expect(asked).toContain(`glovebox/${name}`);
  expect([...Object.values(FRAMEWORK_OF), ...BACKEND_SDKS].filter(isAsked)).toEqual([FRAMEWORK_OF[name]]);
});

test("the adapters fit the types of their frameworks", async () => {
  writeFileSync(join(place, "assignable.ts"), ASSIGNABLE);
  writeFileSync(join(place, "package.json"), JSON.stringify({ type: "module" }));
  const compilerOptions = {
    ...{ target: "es2022", module: "nodenext", strict: true, noEmit: true, skipLibCheck: true, preserveSymlinks: true },
    ...{ lib: ["es2023", "esnext.disposable", "dom", "dom.iterable", "dom.asynciterable"], types: ["node"] },
    typeRoots: [join(root, "node_modules", "@types")],
  };
  writeFileSync(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["assignable.ts"] }));
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const { stdout } = await run(process.execPath, [tsc, "-p", place]).catch((error: { stdout: string }) => error);
  expect(stdout).toBe("");
});
