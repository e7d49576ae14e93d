import { execFile } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { installPackage, whyNoPackage } from "../support/run/installed-package.js";
import { SET_UP_LIMIT } from "../support/run/set-up-limit.js";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const packages = process.env["GLOVEBOX_ADAPTER_PACKAGES"] ?? join(root, "tests", "adapters", "packages");

/** What each example prints last, and the frameworks that its adapter may load. */
const ADAPTERS: Readonly<Record<string, { lastLine: string; loads: readonly string[] }>> = {
  adk: { lastLine: "called, run, answered", loads: ["@google/adk"] },
  "ai-sdk": { lastLine: "called, answered", loads: [] },
  computesdk: { lastLine: "created, streamed, destroyed", loads: ["@computesdk/provider", "computesdk"] },
  deepagents: { lastLine: "written, executed, answered", loads: ["deepagents", "@langchain/core", "langchain"] },
  langchain: { lastLine: "written, executed, answered", loads: ["@langchain/core"] },
};
const FRAMEWORKS = [
  ...[
    "@ai-sdk/harness",
    "@computesdk/provider",
    "@google/adk",
    "@langchain/core",
    "@mastra/core",
    "@openai/agents-core",
  ],
  ...["ai", "computesdk", "deepagents", "langchain"],
];
const BACKEND_SDKS = ["@dagger.io/dagger", "@daytona/sdk", "@vercel/sandbox"];

let place: string;
beforeAll(() => {
  const reason = whyNoPackage();
  if (reason !== undefined) throw new Error(reason);
  place = mkdtempSync(join(tmpdir(), "glovebox-adapters-"));
  // Where a user has it: beside the frameworks.
  const modules = join(place, "node_modules");
  mkdirSync(modules);
  for (const name of readdirSync(join(packages, "node_modules")).filter((each) => !each.startsWith("."))) {
    symlinkSync(join(packages, "node_modules", name), join(modules, name));
  }
  const installed = join(installPackage().place, "node_modules");
  for (const name of ["@types", "yaml"]) rmSync(join(modules, name), { force: true });
  symlinkSync(join(root, "node_modules", "@types"), join(modules, "@types"));
  for (const name of ["glovebox", "yaml"]) cpSync(join(installed, name), join(modules, name), { recursive: true });
  writeFileSync(join(place, "package.json"), JSON.stringify({ type: "module" }));
}, SET_UP_LIMIT);
afterAll(() => rmSync(place, { recursive: true, force: true }));

describe("the package beside the frameworks", () => {
  test.for(Object.entries(ADAPTERS))("runs the example of %s", async ([name, { lastLine }]) => {
    copyFileSync(join(root, "examples", `${name}.mjs`), join(place, `${name}.mjs`));
    const env = { ...process.env, GLOVEBOX_HOME: join(place, "home") };
    const { stdout } = await run(process.execPath, [join(place, `${name}.mjs`)], { cwd: place, env });
    expect(stdout.trim().split("\n").at(-1)).toBe(lastLine);
  });

  test("fits their types", async () => {
    copyFileSync(join(root, "tests", "adapters", "packages", "assignable.ts"), join(place, "assignable.ts"));
    const compilerOptions = {
      ...{ target: "es2022", module: "nodenext", strict: true, noEmit: true, skipLibCheck: true, types: ["node"] },
      ...{ lib: ["es2023", "dom", "dom.iterable", "dom.asynciterable"], exactOptionalPropertyTypes: false },
    };
    writeFileSync(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["assignable.ts"] }));
    const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
    const { stdout } = await run(process.execPath, [tsc, "-p", place]).catch((error: { stdout: string }) => error);
    expect(stdout).toBe("");
  });

  test.for(Object.entries(ADAPTERS))("%s loads its own framework and no other", async ([name, { loads }]) => {
    const list = join(place, `${name}.list`);
    writeFileSync(list, "");
    const hook = `import { appendFileSync } from "node:fs";
      export async function resolve(specifier, context, next) {
        appendFileSync(${JSON.stringify(list)}, specifier + "\\n");
        return await next(specifier, context);
      }`;
    const start = `import { register } from "node:module";
      register("data:text/javascript," + encodeURIComponent(${JSON.stringify(hook)}), import.meta.url);
      await import("glovebox/${name}");`;
    await run(process.execPath, ["--input-type=module", "-e", start], { cwd: place });
    const asked = readFileSync(list, "utf8").trim().split("\n");
    expect(asked).toContain(`glovebox/${name}`);
    const loaded = [...FRAMEWORKS, ...BACKEND_SDKS].filter((each) =>
      asked.some((specifier) => specifier === each || specifier.startsWith(`${each}/`)),
    );
    expect(loaded.filter((each) => !loads.includes(each))).toEqual([]);
    expect(loaded).toEqual(expect.arrayContaining(loads.slice(0, 1)));
  });
});
