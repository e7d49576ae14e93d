// own process: it sets variables that name the user's configuration of tools
import { execFile, execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NodeSpec, RunReport } from "../../src/harness.js";
import { egressInternals } from "../../src/sandbox/egress/open-egress.js";
import { openSandbox } from "../../src/sandbox.js";
import { listen } from "../support/egress/running-proxy.js";
import { createHarnessBench, type HarnessBench } from "../support/harness/bench.js";
import { PACKAGE, packFiles, startTinyRegistry, type TinyRegistry } from "../support/harness/tiny-registry.js";
import { createRepository, git } from "../support/scratch.js";

const HOST = "packages.test";

let bench: HarnessBench;
let registry: TinyRegistry;
let files: { port: number; served: Map<string, Buffer>; close(): void };
const before = { ...process.env };
/** Of the tools that a sandbox on this machine has. */
const versions = new Map<string, string>();

beforeAll(async () => {
  bench = await createHarnessBench();
  // What is found on PATH is remembered from here on, whatever the variables below say.
  await using sandbox = await openSandbox({ backend: "local" });
  for (const program of ["pnpm", "yarn", "pip3", "cargo", "uv", "go"]) {
    const { exitCode, stdout } = await sandbox.exec(program, [program === "go" ? "version" : "--version"]);
    if (exitCode === 0) versions.set(program, stdout.trim());
  }
  registry = await startTinyRegistry(HOST, {
    "package.json": JSON.stringify({ name: PACKAGE, version: "1.0.0" }),
    "index.js": "module.exports = 'it is here';\n",
  });
  const served = new Map<string, Buffer>();
  const server = createServer(({ url = "" }, response) => {
    const found = served.get(url);
    response.writeHead(found === undefined ? 404 : 200, {
      "Content-Type": /\/$/.test(url) ? "text/html" : "text/plain",
    });
    response.end(found);
  });
  files = { port: await listen(server), served, close: () => server.close() };
  egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: (address) => address === "127.0.0.1" };
  const config = join(bench.scratch.path, "user-npmrc");
  writeFileSync(config, `registry=http://${HOST}:${registry.port}/\n`);
  process.env["NPM_CONFIG_USERCONFIG"] = config;
  process.env["NPM_CONFIG_GLOBALCONFIG"] = join(bench.scratch.path, "no-npmrc");
  process.env["YARN_NPM_REGISTRY_SERVER"] = `http://${HOST}:${registry.port}`;
  process.env["PIP_INDEX_URL"] = `http://${HOST}:${files.port}/simple/`;
  process.env["CARGO_HOME"] = join(bench.scratch.path, "cargo-home");
});

afterAll(async () => {
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
  Object.assign(process.env, before);
  delete egressInternals.route;
  registry?.close();
  files?.close();
  await bench?.[Symbol.asyncDispose]();
});

const version = (program: string): string | undefined => versions.get(program);

/** Installs in a repository with these files, and runs a command that needs what was installed. */
async function install(id: string, contents: Readonly<Record<string, string>>, use: NodeSpec): Promise<RunReport> {
  const repo = createRepository(join(bench.scratch.path, id));
  for (const [name, text] of Object.entries(contents)) {
    mkdirSync(dirname(join(repo, name)), { recursive: true });
    writeFileSync(join(repo, name), text);
  }
  git(repo, "add", "-A");
  git(repo, "commit", "--quiet", "-m", "files");
  const blueprint = { name: id, expectsChanges: false, nodes: [use] };
  const report = await bench.run({ blueprint, repo, runId: id, keep: "never" });
  expect(report.error, report.nodes.map(({ output }) => output).join("\n")).toBeUndefined();
  return report;
}

const MANIFEST = JSON.stringify({ name: "p", version: "1.0.0", dependencies: { [PACKAGE]: "1.0.0" } });
const IGNORE = { ".gitignore": "node_modules\n.yarn\n.pnp.*\ntarget\n" };
const REQUIRE: NodeSpec = { id: "use", kind: "command", run: ["node", "-p", `require('${PACKAGE}')`] };

describe("the other tools install from a registry on loopback", () => {
  test("pnpm", async ({ skip }) => {
    if (version("pnpm") === undefined) skip("pnpm is not on this machine: not run");
    const lock = `lockfileVersion: '9.0'\n\nsettings:\n  autoInstallPeers: true\n  excludeLinksFromLockfile: false\n\nimporters:\n\n  .:\n    dependencies:\n      ${PACKAGE}:\n        specifier: 1.0.0\n        version: 1.0.0\n\npackages:\n\n  ${PACKAGE}@1.0.0:\n    resolution: {integrity: ${registry.integrity}}\n\nsnapshots:\n\n  ${PACKAGE}@1.0.0: {}\n`;
    const report = await install("pnpm", { ...IGNORE, "package.json": MANIFEST, "pnpm-lock.yaml": lock }, REQUIRE);
    expect(report.nodes.map(({ id, status }) => [id, status])).toEqual([
      ["install-pnpm", "success"],
      ["use", "success"],
    ]);
  });

  test("yarn 1", async ({ skip }) => {
    if (!/^1\./.test(version("yarn") ?? "")) skip("yarn 1 is not on this machine: not run");
    const address = `http://${HOST}:${registry.port}/${PACKAGE}/-/${PACKAGE}-1.0.0.tgz`;
    const lock = `# yarn lockfile v1\n\n\n${PACKAGE}@1.0.0:\n  version "1.0.0"\n  resolved "${address}"\n  integrity ${registry.integrity}\n`;
    const report = await install("yarn-classic", { ...IGNORE, "package.json": MANIFEST, "yarn.lock": lock }, REQUIRE);
    expect(report.nodes[0]).toMatchObject({ id: "install-yarn", status: "success" });
  });

  test("yarn 2 and later", async ({ skip }) => {
    if (!/^4\.(?:1[89]|[2-9]\d)\./.test(version("yarn") ?? ""))
      skip("yarn 4.18 or later is not on this machine: not run");
    const entry = `"${PACKAGE}@npm:1.0.0":\n  version: 1.0.0\n  resolution: "${PACKAGE}@npm:1.0.0"\n  languageName: node\n  linkType: hard\n`;
    const own = `"p@workspace:.":\n  version: 0.0.0-use.local\n  resolution: "p@workspace:."\n  dependencies:\n    ${PACKAGE}: "npm:1.0.0"\n  languageName: unknown\n  linkType: soft\n`;
    const head = `# This file is generated by running "yarn install" inside your project.\n# Manual changes might be lost - proceed with caution!\n`;
    const lock = `${head}\n__metadata:\n  version: 10\n  cacheKey: 10c0\n\n${own}\n${entry}`;
    const settings = "nodeLinker: node-modules\nenableImmutableInstalls: false\nchecksumBehavior: ignore\n";
    const contents = { ...IGNORE, "package.json": MANIFEST, "yarn.lock": lock, ".yarnrc.yml": settings };
    const report = await install("yarn-berry", contents, REQUIRE);
    expect(report.nodes[0]).toMatchObject({ id: "install-yarn", status: "success" });
  });

  test("pip", async ({ skip }) => {
    if (version("pip3") === undefined) skip("pip is not on this machine: not run");
    const wheel = join(bench.scratch.path, "tiny_thing-1.0.0-py3-none-any.whl");
    const make = `import sys, zipfile
info = "tiny_thing-1.0.0.dist-info/"
with zipfile.ZipFile(sys.argv[1], "w") as out:
    out.writestr("tiny_thing.py", "WORD = 'it is here'\\n")
    out.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: tiny-thing\\nVersion: 1.0.0\\n")
    out.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    out.writestr(info + "RECORD", "")
`;
    execFileSync("python3", ["-c", make, wheel]);
    files.served.set("/simple/tiny-thing/", Buffer.from(`<a href="/files/tiny_thing-1.0.0-py3-none-any.whl">it</a>`));
    files.served.set("/files/tiny_thing-1.0.0-py3-none-any.whl", readFileSync(wheel));
    const use: NodeSpec = {
      id: "use",
      kind: "command",
      run: ["python3", "-c", "import tiny_thing; print(tiny_thing.WORD)"],
    };
    const report = await install("pip", { "requirements.txt": "tiny-thing==1.0.0\n" }, use);
    expect(report.nodes.map(({ id, status }) => [id, status])).toEqual([
      ["install-pip", "success"],
      ["use", "success"],
    ]);
    expect(report.changes?.files ?? []).toEqual([]);
  });

  test("cargo", async ({ skip }) => {
    if (version("cargo") === undefined) skip("cargo is not on this machine: not run");
    const manifest = `[package]\nname = "tiny-thing"\nversion = "1.0.0"\nedition = "2021"\n`;
    const crate = packFiles({ "Cargo.toml": manifest, "src/lib.rs": "" }, "tiny-thing-1.0.0");
    const cksum = createHash("sha256").update(crate).digest("hex");
    const home = process.env["CARGO_HOME"] ?? "";
    const useMirror = (host: string): void => {
      mkdirSync(home, { recursive: true });
      const mirror = `[source.mirror]\nregistry = "sparse+http://${host}:${files.port}/index/"\n`;
      writeFileSync(join(home, "config.toml"), `[source.crates-io]\nreplace-with = "mirror"\n\n${mirror}`);
    };
    const line = { name: PACKAGE, vers: "1.0.0", deps: [], cksum, features: {}, yanked: false };
    files.served.set("/index/config.json", Buffer.from(JSON.stringify({ dl: `http://${HOST}:${files.port}/crates` })));
    files.served.set(`/index/ti/ny/${PACKAGE}`, Buffer.from(`${JSON.stringify(line)}\n`));
    files.served.set(`/crates/${PACKAGE}/1.0.0/download`, crate);
    const contents = {
      ...IGNORE,
      "Cargo.toml": `[package]\nname = "p"\nversion = "1.0.0"\nedition = "2021"\n\n[dependencies]\n${PACKAGE} = "1.0.0"\n`,
      "src/lib.rs": "",
    };
    // Cargo writes the lockfile itself: it names the usual registry, whatever replaces that.
    const project = join(bench.scratch.path, "cargo-lock");
    for (const [name, text] of Object.entries(contents)) {
      mkdirSync(dirname(join(project, name)), { recursive: true });
      writeFileSync(join(project, name), text);
    }
    useMirror("127.0.0.1");
    await promisify(execFile)("cargo", ["generate-lockfile"], { cwd: project });
    const lock = readFileSync(join(project, "Cargo.lock"), "utf8");
    expect(lock).toContain(cksum);
    expect(lock).not.toContain("127.0.0.1");
    useMirror(HOST);
    const use: NodeSpec = {
      id: "use",
      kind: "command",
      shell: 'find "$HOME" -name "*.crate" | grep tiny',
    };
    const report = await install("cargo", { ...contents, "Cargo.lock": lock }, use);
    expect(report.nodes.map(({ id, status }) => [id, status])).toEqual([
      ["install-cargo", "success"],
      ["use", "success"],
    ]);
  });

  test("uv", ({ skip }) => {
    if (version("uv") === undefined) skip("uv is not on this machine: not run");
    else skip("uv is only planned by tests: see install-config.test.ts");
  });

  test("go", ({ skip }) => {
    if (version("go") === undefined) skip("go is not on this machine: not run");
    else skip("go is only planned by tests: see install-config.test.ts");
  });
});
