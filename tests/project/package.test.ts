import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { installPackage, whyNoPackage } from "../support/run/installed-package.js";
import { SET_UP_LIMIT } from "../support/run/set-up-limit.js";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const node24 = join(root, "tests", "node-24", "node_modules", `node-linux-${process.arch}`, "bin", "node");
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
let tarball: string;
let packed: readonly string[];
let manifest: Manifest;

beforeAll(async () => {
  const reason = whyNoPackage();
  if (reason !== undefined) throw new Error(reason);
  ({ place, tarball, packed } = installPackage());
  const installed = join(place, "node_modules", "glovebox");
  manifest = JSON.parse(await readFile(join(installed, "package.json"), "utf8")) as Manifest;
}, SET_UP_LIMIT);

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
      expect.arrayContaining(["LICENSE", "README.md", expect.stringMatching(/^agent\/[\w-]+\.c$/)]),
    );
    if (process.platform === "linux") expect(packed).toContain(`agent/bin/linux-${process.arch}/glovebox-agent`);
  });

  it("holds the agents of linux on x64 and arm64, each for its own machine", async ({ skip }) => {
    if (process.platform !== "linux") skip("the agent is built on Linux only");
    const machines = { x64: 62, arm64: 183 };
    for (const [arch, machine] of Object.entries(machines)) {
      const path = `agent/bin/linux-${arch}/glovebox-agent`;
      if (!packed.includes(path)) skip(`linux-${arch} is not built here: its compiler is missing`);
      const program = await readFile(join(place, "node_modules", "glovebox", path));
      expect([arch, program.readUInt16LE(18)]).toEqual([arch, machine]);
      expect((await stat(join(place, "node_modules", "glovebox", path))).mode & 0o111).toBe(0o111);
    }
  });

  it("has the documents that its README names", async () => {
    const readme = await readFile(join(place, "node_modules", "glovebox", "README.md"), "utf8");
    const named = [...readme.matchAll(/\]\((docs\/[\w-]+\.md)/g)].map(([, path]) => path);
    expect(named).toContain("docs/contract.md");
    expect(named.filter((path) => path === undefined || !packed.includes(path))).toEqual([]);
  });

  it("holds nothing else", () => {
    const expected =
      /^(?:dist\/(?:src|contracts)\/|agent\/bin\/linux-|agent\/[\w-]+\.[ch]$|blueprints\/[\w-]+\.yaml$|docs\/[\w-]+\.md$|schemas\/[\w.-]+\.json$|(?:package\.json|LICENSE|README\.md)$)/;
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
  ["Node 24", node24, /^v24\./],
])("installed, on %s", (_, node, version) => {
  const script = async (source: string): Promise<string> => {
    const { stdout } = await run(node, ["--input-type=module", "-e", source], { cwd: place });
    return stdout.trim();
  };

  it("imports every entry point and exports what it documents", async ({ skip }) => {
    if (!existsSync(node)) skip("it is not installed: npm ci --prefix tests/node-24");
    const names = Object.keys(manifest.exports).filter((name) => !name.endsWith(".json"));
    const specifiers = names.map((name) => name.replace(/^\./, "glovebox"));
    const source = `
      const loaded = {};
      for (const name of ${JSON.stringify(specifiers)}) loaded[name] = Object.keys(await import(name));
      console.log(JSON.stringify({ version: process.version, loaded }));
    `;
    const answer = JSON.parse(await script(source)) as { version: string; loaded: Record<string, string[]> };
    expect(answer.version).toMatch(version);
    expect(answer.loaded["glovebox"]).toEqual(expect.arrayContaining(rootExports));
    expect(answer.loaded["glovebox/testing"]).toEqual(expect.arrayContaining(["runConformance", "formatReport"]));
    for (const specifier of specifiers) expect(answer.loaded[specifier]).not.toEqual([]);
  });

  it("has a binary that runs", async ({ skip }) => {
    if (!existsSync(node)) skip("it is not installed: npm ci --prefix tests/node-24");
    const program = join(place, "node_modules", ".bin", "glovebox");
    expect((await run(node, [program, "version"], { cwd: place })).stdout).toMatch(/^glovebox \d+\.\d+\.\d+\n$/);
    const blueprints = await run(node, [program, "blueprint", "validate", "bug-fix"], { cwd: place });
    expect(blueprints.stdout).toBe("bug-fix: valid\n");
    expect(await readFile(program, "utf8")).toMatch(/^#!\/usr\/bin\/env node\n/);
    if (process.platform !== "linux") skip("the local backend is confined on Linux only");
    const { stdout } = await run(node, [program, "exec", "--", "echo", "from the binary"], { cwd: place });
    expect(stdout).toBe("from the binary\n");
  });

  it("runs a command in a sandbox", async ({ skip }) => {
    if (!existsSync(node)) skip("it is not installed: npm ci --prefix tests/node-24");
    if (process.platform !== "linux") skip("the local backend is confined on Linux only");
    const source = `
      import { openSandbox } from "glovebox";
      const sandbox = await openSandbox({ backend: "local" });
      try { console.log((await sandbox.exec({ argv: ["echo", "from the package"] })).stdout); }
      finally { await sandbox.teardown(); }
    `;
    expect(await script(source)).toBe("from the package");
  });
});
