import { execFile } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
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

interface Tried {
  /** What its example prints last. */
  readonly lastLine: string;
  /** The frameworks that it may load; the first is its own, and is loaded with it. */
  readonly loads: readonly string[];
  /** The framework declares Node 22. */
  readonly needs22?: boolean;
}
const ADAPTERS: Readonly<Record<string, Tried>> = {
  adk: { lastLine: "called, run, answered", loads: ["@google/adk"] },
  "ai-sdk": { lastLine: "called, answered", loads: [], needs22: true },
  "claude-agent-sdk": {
    lastLine: "its tools inside, and itself inside",
    loads: ["@anthropic-ai/claude-agent-sdk"],
  },
  computesdk: { lastLine: "created, streamed, destroyed", loads: ["@computesdk/provider", "computesdk"] },
  deepagents: { lastLine: "written, executed, answered", loads: ["deepagents", "@langchain/core", "langchain"] },
  langchain: { lastLine: "written, executed, answered", loads: ["@langchain/core"] },
  mastra: { lastLine: "called, answered, written", loads: ["@mastra/core"], needs22: true },
  "openai-agents": { lastLine: "repaired, stored, resumed", loads: ["@openai/agents-core"] },
};
const FRAMEWORKS = [
  ...["@ai-sdk/harness", "@anthropic-ai/claude-agent-sdk", "@computesdk/provider", "@google/adk", "@langchain/core"],
  ...["@mastra/core", "@openai/agents-core", "ai", "computesdk", "deepagents", "langchain"],
];
const BACKEND_SDKS = ["@dagger.io/dagger", "@daytona/sdk", "@vercel/sandbox"];

/** The Node that is a package beside the frameworks. */
const node22 = join(root, "tests", "adapters", "packages", "node_modules", `node-linux-${process.arch}`, "bin", "node");

/** The Node to run with; undefined if the framework declares a newer one that is not installed. */
function nodeFor({ needs22 = false }: Partial<Tried>): string | undefined {
  if (!needs22 || Number(process.versions.node.split(".")[0]) >= 22) return process.execPath;
  return existsSync(node22) ? node22 : undefined;
}
const NO_NODE = "it declares Node 22, and the package with it is not installed";

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

/** What a program asks for by `import`, and by whom: the address of a file, or the name of a package. */
async function asks(node: string, specifier: string): Promise<string[]> {
  const list = join(place, `${specifier.replaceAll("/", "-")}.list`);
  writeFileSync(list, "");
  const hook = `import { appendFileSync } from "node:fs";
    export async function resolve(specifier, context, next) {
      const found = await next(specifier, context);
      appendFileSync(${JSON.stringify(list)}, specifier + "\\n" + found.url + "\\n");
      return found;
    }`;
  const start = `import { register } from "node:module";
    register("data:text/javascript," + encodeURIComponent(${JSON.stringify(hook)}), import.meta.url);
    await import(${JSON.stringify(specifier)});`;
  await run(node, ["--input-type=module", "-e", start], { cwd: place });
  return readFileSync(list, "utf8").trim().split("\n");
}

function among(asked: readonly string[], names: readonly string[]): string[] {
  return names.filter((each) => asked.some((it) => it === each || it.startsWith(`${each}/`)));
}

describe("the package beside the frameworks", () => {
  test.for(Object.entries(ADAPTERS))("runs the example of %s", async ([name, { lastLine, ...tried }], { skip }) => {
    const node = nodeFor(tried);
    if (node === undefined) return skip(NO_NODE);
    copyFileSync(join(root, "examples", `${name}.mjs`), join(place, `${name}.mjs`));
    const env = { ...process.env, GLOVEBOX_HOME: join(place, "home") };
    const { stdout } = await run(node, [join(place, `${name}.mjs`)], { cwd: place, env });
    expect(stdout.trim().split("\n").at(-1)).toBe(lastLine);
  });

  test.for([true, false])("fits their types, with exactOptionalPropertyTypes %s", async (isExact) => {
    copyFileSync(join(root, "tests", "adapters", "packages", "assignable.ts"), join(place, "assignable.ts"));
    const compilerOptions = {
      ...{ target: "es2022", module: "nodenext", strict: true, noEmit: true, skipLibCheck: true, types: ["node"] },
      ...{ lib: ["es2023", "esnext.disposable", "dom", "dom.iterable", "dom.asynciterable"] },
      exactOptionalPropertyTypes: isExact,
    };
    writeFileSync(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["assignable.ts"] }));
    const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
    const { stdout } = await run(process.execPath, [tsc, "-p", place]).catch((error: { stdout: string }) => error);
    expect(stdout).toBe("");
  });

  test.for(Object.entries(ADAPTERS))("%s loads its own framework and no other", async ([name, tried], { skip }) => {
    const node = nodeFor(tried);
    if (node === undefined) return skip(NO_NODE);
    const asked = await asks(node, `glovebox/${name}`);
    expect(asked).toContain(`glovebox/${name}`);
    const loaded = among(asked, [...FRAMEWORKS, ...BACKEND_SDKS]);
    expect(loaded.filter((each) => !tried.loads.includes(each))).toEqual([]);
    expect(loaded).toEqual(expect.arrayContaining(tried.loads.slice(0, 1)));
  });

  test("itself loads no adapter, no framework and no SDK of a backend", async () => {
    const asked = await asks(process.execPath, "glovebox");
    expect(asked.some((each) => each.endsWith("/node_modules/glovebox/dist/src/index.js"))).toBe(true);
    expect(asked.filter((each) => each.includes("/adapters/"))).toEqual([]);
    expect(among(asked, [...FRAMEWORKS, ...BACKEND_SDKS])).toEqual([]);
  });
});
