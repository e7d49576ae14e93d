import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { SourceMap, type SourceMapping } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { installPackage, whyNoPackage } from "../support/run/installed-package.js";
import { NODE_24, whyNoRuntime } from "../support/run/runtimes.js";
import { SET_UP_LIMIT } from "../support/run/set-up-limit.js";
import { FIRST_PROGRAM } from "../support/walks/steps.js";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
/** Their frameworks are not installed here. */
const ADAPTERS = ["adk", "claude-agent-sdk", "computesdk", "deepagents", "langchain", "mastra", "openai-agents"].map(
  (name) => `glovebox/${name}`,
);
const rootExports = [
  ...["openSandbox", "createLocalSandbox", "registerBackend", "listSandboxes", "reap"],
  ...["SandboxError", "getSandboxExecutor", "shellQuote", "parseGitHubRepo"],
];

interface Manifest {
  exports: Record<string, string | { types: string; default: string }>;
  bin: Record<string, string>;
  dependencies?: Record<string, string>;
}

/** What looks at a package, as it is typed by hand; here it is given the one that was packed. */
const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: Record<string, string> };
const checks = (scripts["check:package"] ?? "").replace(" --pack .", "").split(" && ");

let place: string;
let installed: string;
let tarball: string;
let packed: readonly string[];
let manifest: Manifest;

beforeAll(async () => {
  const reason = whyNoPackage();
  if (reason !== undefined) throw new Error(reason);
  ({ place, tarball, packed } = installPackage());
  installed = join(place, "node_modules", "glovebox");
  manifest = JSON.parse(await readFile(join(installed, "package.json"), "utf8")) as Manifest;
}, SET_UP_LIMIT);

/** A document without blocks and pieces of code, in which nothing is a link. */
function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```$/gm, "").replace(/`[^`\n]*`/g, "");
}

/** What links call the headings of a document. */
function headingsOf(text: string): string[] {
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading.toLowerCase());
  return headings.map((heading) => heading.replace(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(" ", "-"));
}

describe("the package", () => {
  it("holds every entry point, the licence, the readme and the agent with its sources", () => {
    const targets = Object.values(manifest.exports).flatMap((target) =>
      typeof target === "string" ? [target] : [target.types, target.default],
    );
    for (const target of [...targets, ...Object.values(manifest.bin)])
      expect(packed).toContain(target.replace(/^\.\//, ""));
    const schemas = packed.filter((path) => path.startsWith("schemas/")).map((path) => `./${path}`);
    expect(Object.keys(manifest.exports)).toEqual(expect.arrayContaining(schemas));
    expect(packed).toEqual(
      expect.arrayContaining([
        "LICENSE",
        "README.md",
        "guest/main.c",
        expect.stringMatching(/^guest\/\w+\/[\w-]+\.c$/),
      ]),
    );
    if (process.platform === "linux") expect(packed).toContain(`guest/bin/linux-${process.arch}/glovebox-guest`);
  });

  it("holds the agents of linux on x64 and arm64, each for its own machine", async ({ skip }) => {
    if (process.platform !== "linux") skip("the agent is built on Linux only");
    const machines = { x64: 62, arm64: 183 };
    for (const [arch, machine] of Object.entries(machines)) {
      const path = `guest/bin/linux-${arch}/glovebox-guest`;
      if (!packed.includes(path)) skip(`linux-${arch} is not built here: its compiler is missing`);
      const program = await readFile(join(installed, path));
      expect([arch, program.readUInt16LE(18)]).toEqual([arch, machine]);
      expect((await stat(join(installed, path))).mode & 0o111).toBe(0o111);
    }
  });

  it("has the documents that its README names", async () => {
    const readme = await readFile(join(installed, "README.md"), "utf8");
    const named = [...readme.matchAll(/\]\((docs\/[\w-]+\.md)/g)].map(([, path]) => path);
    expect(named).toContain("docs/contract.md");
    expect(named.filter((path) => path === undefined || !packed.includes(path))).toEqual([]);
  });

  it("has every file and heading that its documents link to", async () => {
    const documents = packed.filter((path) => path.endsWith(".md"));
    const texts = new Map(
      await Promise.all(documents.map(async (path) => [path, await readFile(join(installed, path), "utf8")] as const)),
    );
    const dead: string[] = [];
    for (const [from, text] of texts) {
      for (const [, link = ""] of withoutCode(text).matchAll(/\]\(\s*<?([^)\s>]+)/g)) {
        if (/^[a-z]+:/.test(link)) continue;
        const [to = "", heading] = link.split("#");
        const path = to === "" ? from : join(dirname(from), to).replace(/\/$/, "");
        const isThere = packed.some((each) => each === path || each.startsWith(`${path}/`));
        const isShown = heading === undefined || headingsOf(texts.get(path) ?? "").includes(heading);
        if (!isThere || !isShown) dead.push(`${from}: ${link}`);
      }
    }
    expect(documents).toContain("docs/security.md");
    expect(dead).toEqual([]);
  });

  it("has one file of declarations for each entry point, and one that they share", () => {
    const types = Object.values(manifest.exports).flatMap((target) => (typeof target === "string" ? [] : target.types));
    const declarations = packed.filter((path) => path.endsWith(".d.ts")).map((path) => `./${path}`);
    expect(declarations.sort()).toEqual([...types, "./dist/src/shared.d.ts"].sort());
  });

  it("holds every source that its maps name, once", async () => {
    const maps = packed.filter((path) => path.endsWith(".map"));
    for (const map of maps) {
      const { sources, sourcesContent } = JSON.parse(await readFile(join(installed, map), "utf8"));
      const missing = sources.filter((source: string) => !packed.includes(join(dirname(map), source)));
      expect({ map, missing, sourcesContent }).toEqual({ map, missing: [], sourcesContent: undefined });
    }
    const modules = packed.filter((path) => path.startsWith("dist/") && path.endsWith(".js"));
    // The sources of other packages are not in this one.
    const ours = modules.filter((path) => !path.endsWith("/parts/third-party.js"));
    const unmapped = ours.filter((path) => !maps.includes(`${path}.map`));
    const code = await Promise.all(unmapped.map((path) => readFile(join(installed, path), "utf8")));
    // What only passes on has nothing to map, and neither has what the bundler brings along.
    const isOurs = (text: string): boolean =>
      !/^(?:(?:im|ex)port .*\n)+$|^(?:import .*\n)*\/\/ \\0(?:@oxc-project|rolldown)/.test(text);
    expect(code.filter(isOurs)).toEqual([]);
  });

  it("leads from a declaration to its source", async () => {
    const declarations = (await readFile(join(installed, "dist/src/shared.d.ts"), "utf8")).split("\n");
    const line = declarations.findIndex((text) => text.startsWith("declare function openSandbox("));
    const map = new SourceMap(JSON.parse(await readFile(join(installed, "dist/src/shared.d.ts.map"), "utf8")));
    const column = "declare function ".length;
    const { originalSource, originalLine } = map.findEntry(line, column) as SourceMapping;
    const source = await readFile(join(installed, "dist/src", originalSource), "utf8");
    expect(source.split("\n")[originalLine]).toContain("function openSandbox(");
  });

  it("holds nothing else", () => {
    const expected =
      /^(?:dist\/src\/|(?:src|contracts)\/[\w./-]+\.(?:ts|md)$|guest\/bin\/linux-|guest\/(?!fuzz\/)(?:\w+\/)?[\w-]+\.[ch]$|blueprints\/[\w-]+\.yaml$|docs\/(?:[\w-]+\.md|container-seccomp\.json)$|examples\/[\w/-]+\.(?:ts|mjs)$|schemas\/[\w.-]+\.json$|(?:package\.json|LICENSE|(?:CHANGELOG|(?:guest\/)?README|SECURITY)\.md)$)/;
    expect(packed.filter((path) => !expected.test(path))).toEqual([]);
  });

  it.each(checks)("is in order for %s", async (check) => {
    const [program = "", ...args] = check.split(" ");
    const { stdout } = await run(join(root, "node_modules", ".bin", program), [tarball, ...args]).catch((error) => {
      throw new Error(`${check} found something wrong:\n${error.stdout}${error.stderr}`);
    });
    expect(stdout).toMatch(/All good!|🟢 \(ESM\)/);
  });

  it("depends on the reader of YAML and on nothing else", () => {
    expect(Object.keys(manifest.dependencies ?? {})).toEqual(["yaml"]);
  });
});

describe.each([
  ["the running Node", process.execPath, /^v/],
  ["Node 24", NODE_24.program, /^v24\./],
])("installed, on %s", (_, node, version) => {
  const missing = whyNoRuntime(node);
  const script = async (source: string): Promise<string> => {
    const { stdout } = await run(node, ["--input-type=module", "-e", source], { cwd: place });
    return stdout.trim();
  };

  it("imports every entry point and exports what it documents", async ({ skip }) => {
    if (missing !== undefined) skip(missing);
    const names = Object.keys(manifest.exports).filter((name) => !name.endsWith(".json"));
    const specifiers = names.map((name) => name.replace(/^\./, "glovebox"));
    const source = `
      const loaded = {};
      for (const name of ${JSON.stringify(specifiers)}) {
        loaded[name] = await import(name).then(Object.keys, ({ code, hint }) => [code + ": " + hint]);
      }
      console.log(JSON.stringify({ version: process.version, loaded }));
    `;
    const answer = JSON.parse(await script(source)) as { version: string; loaded: Record<string, string[]> };
    expect(answer.version).toMatch(version);
    expect(answer.loaded["glovebox"]).toEqual(expect.arrayContaining(rootExports));
    expect(answer.loaded["glovebox/testing"]).toEqual(expect.arrayContaining(["runConformance", "formatReport"]));
    for (const specifier of specifiers) {
      const names = answer.loaded[specifier] ?? [];
      const isWithout = names.some((name) => name.startsWith("missing_dependency: npm install "));
      // An adapter that extends classes of its framework says how to install it.
      expect([specifier, names]).toEqual([specifier, names.filter((name) => isWithout || /^\w+$/.test(name))]);
      expect(names, specifier).not.toEqual([]);
      if (isWithout) expect(ADAPTERS).toContain(specifier);
    }
  });

  it("has a binary that runs", async ({ skip }) => {
    if (missing !== undefined) skip(missing);
    const program = join(place, "node_modules", ".bin", "glovebox");
    expect((await run(node, [program, "version"], { cwd: place })).stdout).toMatch(/^glovebox \d+\.\d+\.\d+\n$/);
    const blueprints = await run(node, [program, "blueprint", "validate", "bug-fix"], { cwd: place });
    expect(blueprints.stdout).toBe("bug-fix: valid\n");
    expect(await readFile(program, "utf8")).toMatch(/^#!\/usr\/bin\/env node\n/);
    if (process.platform !== "linux") skip("the local backend is confined on Linux only");
    const { stdout } = await run(node, [program, "exec", "--", "echo", "from the binary"], { cwd: place });
    expect(stdout).toBe("from the binary\n");
  });

  it("serves models with nothing else installed", async ({ skip }) => {
    if (missing !== undefined) skip(missing);
    const program = join(place, "node_modules", ".bin", "glovebox");
    const serving = run(node, [program, "mcp"], { cwd: place });
    const clientInfo = { name: "raw", version: "1" };
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
    serving.child.stdin?.end(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params })}\n`);
    const { stdout } = await serving;
    expect(JSON.parse(stdout)).toMatchObject({ id: 1, result: { serverInfo: { name: "glovebox" } } });
  });

  it("shows TypeScript in the stack of an error, where Node is asked to", async ({ skip }) => {
    if (missing !== undefined) skip(missing);
    const source = `
      import { openSandbox } from "glovebox";
      await openSandbox({ backend: 7 }).catch((error) => console.log(error.stack));
    `;
    const { stdout } = await run(node, ["--enable-source-maps", "--input-type=module", "-e", source], { cwd: place });
    const [, path = "", line] = /\((\/[^\n]+\.ts):(\d+):\d+\)/.exec(stdout) ?? [];
    expect(path).toContain(join("glovebox", "src"));
    expect((await readFile(path, "utf8")).split("\n")[Number(line) - 1]).toContain("new SandboxError");
  });

  it("runs the first program of the readme, as a module and as CommonJS", async ({ skip }) => {
    if (missing !== undefined) skip(missing);
    if (process.platform !== "linux") skip("the local backend is confined on Linux only");
    const [first = "", ...rest] = FIRST_PROGRAM.split("\n");
    const common = `${first.replace(/^import (.*) from (.*);$/, "const $1 = require($2);")}
      (async () => {${rest.join("\n")}})();`;
    const printed = /^0 hello from \/\S+\n1 cat: \/etc\/shadow: No such file or directory$/;
    expect(await script(FIRST_PROGRAM)).toMatch(printed);
    const { stdout, stderr } = await run(node, ["--input-type=commonjs", "-e", common], { cwd: place });
    expect({ stdout: stdout.trim(), stderr }).toEqual({ stdout: expect.stringMatching(printed), stderr: "" });
  });
});
