// own process: it sets variables that name the user's configuration of npm
import { existsSync, linkSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BlueprintSpec, type HarnessOptions, type NodeSpec, prepareRun, resumeRun } from "../../src/harness.js";
import { egressInternals } from "../../src/sandbox/egress/open-egress.js";
import { shellQuote } from "../../src/util/shell.js";
import { BUSYBOX, useEngine, whyNoDocker } from "../support/docker/engine.js";
import { createHarnessBench, type HarnessBench } from "../support/harness/bench.js";
import { PACKAGE, startTinyRegistry, type TinyRegistry } from "../support/harness/tiny-registry.js";
import { git } from "../support/scratch.js";

const HOST = "packages.test";
const MOVED = ["NPM_CONFIG_USERCONFIG", "NPM_CONFIG_GLOBALCONFIG", "NPM_CONFIG_REGISTRY"];

let bench: HarnessBench;
let registry: TinyRegistry;
const before = Object.fromEntries(MOVED.map((name) => [name, process.env[name]]));

beforeAll(async () => {
  registry = await startTinyRegistry(HOST, {
    "package.json": JSON.stringify({
      name: PACKAGE,
      version: "1.0.0",
      scripts: { postinstall: "node after.js" },
    }),
    "index.js": "module.exports = 'it is here';\n",
    "after.js":
      "require('fs').writeFileSync('seen.json', JSON.stringify({ env: process.env, uid: process.getuid() }));\n",
  });
  egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: (address) => address === "127.0.0.1" };
  bench = await createHarnessBench((repo) => {
    const address = `http://${HOST}:${registry.port}/${PACKAGE}/-/${PACKAGE}-1.0.0.tgz`;
    write(repo, address, registry.integrity);
  });
  const config = join(bench.scratch.path, "user-npmrc");
  writeFileSync(
    config,
    `registry=http://${HOST}:${registry.port}/\n//${HOST}:${registry.port}/:_authToken=npm_not-for-the-inside\n`,
  );
  process.env["NPM_CONFIG_USERCONFIG"] = config;
  process.env["NPM_CONFIG_GLOBALCONFIG"] = join(bench.scratch.path, "no-npmrc");
  delete process.env["NPM_CONFIG_REGISTRY"];
});

afterAll(async () => {
  for (const [name, value] of Object.entries(before)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  delete egressInternals.route;
  registry?.close();
  await bench?.[Symbol.asyncDispose]();
});

function write(repo: string, resolved: string, integrity: string): void {
  const dependencies = { [PACKAGE]: "1.0.0" };
  const entry = { version: "1.0.0", resolved, integrity, hasInstallScript: true };
  const packages = { "": { name: "p", version: "1.0.0", dependencies }, [`node_modules/${PACKAGE}`]: entry };
  const lock = { name: "p", version: "1.0.0", lockfileVersion: 3, requires: true, packages };
  writeFileSync(join(repo, "package.json"), JSON.stringify({ name: "p", version: "1.0.0", dependencies }));
  writeFileSync(join(repo, "package-lock.json"), JSON.stringify(lock));
  writeFileSync(join(repo, ".gitignore"), "node_modules\n.glovebox\nignored\n.env*\nlocal.json\n");
  git(repo, "add", "-A");
  git(repo, "commit", "--quiet", "-m", "needs a package");
}

const USE: NodeSpec = { id: "use", kind: "command", run: ["node", "-p", `require('${PACKAGE}')`] };
/** An agent that tries what the installation did: by the proxy, directly, and with the variables of the installation. */
const TRY = `cat > /dev/null
for proxy in '' http://127.0.0.1:3128; do
  http_proxy=$proxy curl -fsS -m 20 http://${HOST}:PORT/${PACKAGE} > /dev/null && { echo REACHED; exit 0; }
done
echo closed`;
const spec = (nodes: NodeSpec[], sandbox: BlueprintSpec["sandbox"] = {}): BlueprintSpec => ({
  name: "with-packages",
  sandbox,
  expectsChanges: false,
  nodes,
});
const agent = (): NodeSpec => ({
  id: "try",
  kind: "agent",
  agent: "command",
  command: ["sh", "-c", TRY.replaceAll("PORT", String(registry.port))],
  prompt: "go",
});
const run = (runId: string, blueprint: HarnessOptions["blueprint"], more: Partial<HarnessOptions> = {}) =>
  bench.run({ blueprint, runId, keep: "never", ...more });

describe("an install step on local", () => {
  test("gets what the lockfile names; the agent after it reaches nothing of that", async () => {
    const report = await run("installs", spec([USE, agent()]));
    expect(report.error).toBeUndefined();
    expect(report.nodes.map(({ id, status }) => [id, status])).toEqual([
      ["install-npm", "success"],
      ["use", "success"],
      ["try", "success"],
    ]);
    const [install, use, tried] = report.nodes;
    expect(install).toMatchObject({ kind: "command", command: "'npm' 'ci'" });
    expect(install?.durationMs).toBeGreaterThan(0);
    expect(use?.output).toBe("it is here\n");
    expect(registry.asked.some((path) => path.endsWith(".tgz"))).toBe(true);
    expect(tried?.output).toContain("closed");
    expect(tried?.output).not.toContain("REACHED");
    expect(bench.file("installs", "report.md")).toContain("`install-npm`");
  });

  test("is confined as everything else is, and has no token", async () => {
    const look: NodeSpec = { id: "look", kind: "command", run: ["cat", `node_modules/${PACKAGE}/seen.json`] };
    const report = await run("confined", spec([look]));
    expect(report.status).toBe("success");
    const { env, uid } = JSON.parse(report.nodes[1]?.output ?? "") as { env: Record<string, string>; uid: number };
    expect(uid).not.toBe(0);
    expect(env["HOME"]).toBe("/home/sandbox");
    expect(JSON.stringify(env)).not.toContain("not-for-the-inside");
    expect(registry.sawToken()).toBe(false);
    expect(bench.state("confined", "run.json")).not.toContain("not-for-the-inside");
  });

  test("can be left out by the caller and by the blueprint, and be another program", async () => {
    const [use] = (await run("left-out", spec([USE]), { install: false })).nodes;
    expect(use).toMatchObject({ id: "use", status: "failure" });
    const off = await run("turned-off", spec([USE], { install: false }));
    expect(off.nodes.map(({ id }) => id)).toEqual(["use"]);
    const own = ["npm", "install", "--no-save", "--ignore-scripts"];
    const other = await run("own-step", spec([USE], { install: own }));
    expect(other.nodes.map(({ id, status, command }) => [id, status, command])).toEqual([
      ["install-npm", "success", shellQuote(own)],
      ["use", "success", expect.any(String)],
    ]);
  });

  test("that fails ends the run before the first node, and says what helps", async () => {
    const report = await run("fails", spec([USE], { install: ["sh", "-c", "exit 7"] }));
    expect(report).toMatchObject({ status: "error", error: { code: "command_failed" } });
    expect(report.nodes.map(({ id }) => id)).toEqual(["install-npm"]);
    expect(report.error?.hint).toContain("--no-install");
    expect(report.error?.hint).toContain("token");
  });

  test("is run again when the run is resumed, and closed again", async () => {
    const red = await run("resumed", spec([{ id: "red", kind: "command", shell: "test -e green" }, USE, agent()]), {
      keep: "never",
    });
    expect(red.status).toBe("failed");
    const asked = registry.asked.length;
    const again = await resumeRun({ runId: "resumed", from: "red" });
    expect(again.nodes[0]).toMatchObject({ id: "install-npm", status: "success" });
    expect(registry.asked.length).toBeGreaterThan(asked);
  });

  test("is in the plan, with the hosts that only it reaches", async () => {
    const options = { repo: bench.repo, intent: "look", sandboxType: "local" };
    const { plan, warnings } = await prepareRun({ ...options, blueprint: spec([USE]) });
    expect(plan.sandbox.network).toBe("none");
    expect(plan.installs).toMatchObject([
      {
        id: "install-npm",
        lockfile: "package-lock.json",
        run: ["npm", "ci"],
        reach: [`plain://${HOST}:${registry.port}`],
      },
    ]);
    expect(warnings.join()).not.toContain("install");
    const none = await prepareRun({ ...options, blueprint: spec([USE]), network: "none" });
    expect(none.plan.installs).toBeUndefined();
    expect(none.warnings.join()).toContain("the network of the run is none");
    const wide = await prepareRun({ ...options, blueprint: spec([USE]), network: "full" });
    expect(wide.plan).toMatchObject({ sandbox: { network: "full" }, installs: [{ reach: [] }] });
    const more = await prepareRun({
      ...options,
      blueprint: spec([USE], { allow: ["a.test"] }),
      network: { allow: ["b.test"] },
    });
    expect(more.plan.sandbox.network).toEqual({ allow: ["a.test", "b.test"] });
    await expect(
      prepareRun({ ...options, blueprint: spec([USE]), network: "none", sandbox: { network: "full" } }),
    ).rejects.toMatchObject({ code: "invalid_argument" });
  });
});

describe("what comes from the repository", () => {
  test("a host that only the lockfile names is refused before anything is made, with the flag to type", async () => {
    git(bench.repo, "checkout", "--quiet", "-b", "evil");
    write(bench.repo, `http://evil.test:${registry.port}/x.tgz`, registry.integrity);
    const asked = registry.asked.length;
    const options = { blueprint: spec([USE]), repo: bench.repo, intent: "x", sandboxType: "local" };
    const entry = `plain://evil.test:${registry.port}`;
    await expect(prepareRun(options)).rejects.toMatchObject({
      code: "permission_denied",
      message: expect.stringContaining(entry),
      hint: expect.stringContaining(`--network allow=${entry}`),
    });
    const allowed = await prepareRun({ ...options, network: { allow: [entry] } });
    expect(allowed.plan.installs).toHaveLength(1);
    expect(registry.asked.length).toBe(asked);
    git(bench.repo, "checkout", "--quiet", "main");
  });

  test("a registry that only the project's own configuration names is refused, too", async () => {
    git(bench.repo, "checkout", "--quiet", "-b", "own-registry");
    writeFileSync(join(bench.repo, ".npmrc"), "registry=https://evil.test/\n");
    git(bench.repo, "add", "-A");
    git(bench.repo, "commit", "--quiet", "-m", "mine");
    const options = { blueprint: spec([USE]), repo: bench.repo, intent: "x", sandboxType: "local" };
    await expect(prepareRun(options)).rejects.toMatchObject({ hint: expect.stringContaining("allow=evil.test") });
    git(bench.repo, "checkout", "--quiet", "main");
  });

  test("a blueprint without trust gets neither its own step nor copies, and no registry for the step that is found", async () => {
    const folder = join(bench.repo, ".glovebox", "blueprints");
    mkdirSync(folder, { recursive: true });
    const put = (name: string, sandbox: object): string => {
      const path = join(folder, `${name}.json`);
      writeFileSync(
        path,
        JSON.stringify({ version: 1, ...spec([USE], sandbox as NonNullable<BlueprintSpec["sandbox"]>) }),
      );
      return path;
    };
    const options = { repo: bench.repo, intent: "x", sandboxType: "local" };
    for (const sandbox of [{ install: ["curl", "evil.test"] }, { copy: ["node_modules"] }]) {
      const refused = prepareRun({ ...options, blueprint: put("wants", sandbox) });
      await expect(refused).rejects.toMatchObject({
        code: "permission_denied",
        hint: expect.stringContaining("--trust"),
      });
    }
    const { plan, warnings } = await prepareRun({ ...options, blueprint: put("plain", {}) });
    expect(plan.installs).toBeUndefined();
    expect(warnings.join()).toContain("--trust");
    expect((await prepareRun({ ...options, blueprint: put("off", { install: false }) })).plan.installs).toBeUndefined();
    const trusted = await prepareRun({ ...options, blueprint: put("plain", {}), trust: true });
    expect(trusted.plan.installs).toHaveLength(1);
  });
});

describe("copies of ignored paths", () => {
  test("are files of their own, without secrets and without links that lead out", async () => {
    const { repo, scratch } = bench;
    const modules = join(repo, "node_modules", PACKAGE);
    mkdirSync(modules, { recursive: true });
    writeFileSync(join(scratch.path, "outside.txt"), "outside");
    writeFileSync(join(modules, "index.js"), "module.exports = 'copied';\n");
    writeFileSync(join(modules, ".env.local"), "KEY=1");
    linkSync(join(modules, "index.js"), join(modules, "same.js"));
    symlinkSync(join(scratch.path, "outside.txt"), join(modules, "out"));
    symlinkSync("index.js", join(modules, "near"));
    writeFileSync(join(repo, "local.json"), "{}");
    const shell = `cat node_modules/${PACKAGE}/near local.json; echo; cd node_modules/${PACKAGE}; ls -A | tr '\\n' ' '; echo changed > index.js; cat same.js`;
    const report = await run("copies", spec([USE, { id: "look", kind: "command", shell }]), {
      copy: ["node_modules/", "local.json"],
    });
    expect(report.error).toBeUndefined();
    expect(report.nodes.map(({ id }) => id)).toEqual(["use", "look"]);
    expect(report.nodes[0]?.output).toBe("copied\n");
    expect(report.nodes[1]?.output).toBe(
      "module.exports = 'copied';\n{}\nindex.js near same.js module.exports = 'copied';\n",
    );
    expect(readFileSync(join(modules, "index.js"), "utf8")).toContain("copied");
    expect(report.warnings.join("\n")).toContain(".env.local");
    expect(report.warnings.join("\n")).toContain(`node_modules/${PACKAGE}/out`);
    expect(report.warnings.join("\n")).toContain("node_modules is copied in");
  });

  test.each([
    ["../outside.txt", "not a path in the repository"],
    ["/etc", "not a path in the repository"],
    [".git", "belongs to git"],
    [".env.local", "hold secrets"],
    ["ignored/.env", "hold secrets"],
    ["a.txt", "git does not ignore it"],
    ["ignored-link", "a link is not followed"],
    ["nothing-here", "There is no"],
  ])("%s is refused: %s", async (path, why) => {
    if (!existsSync(join(bench.repo, "ignored-link")))
      symlinkSync(bench.scratch.path, join(bench.repo, "ignored-link"));
    const options = { blueprint: spec([USE]), repo: bench.repo, intent: "x", sandboxType: "local", install: false };
    await expect(prepareRun({ ...options, copy: [path] })).rejects.toThrow(why);
  });
});

describe("a name that could not be resolved", () => {
  test("is explained in the report of a command and of a gate", async () => {
    const shell = "echo 'curl: (6) Could not resolve host: evil.test' >&2; exit 6";
    const command = await run("no-name", spec([{ id: "get", kind: "command", shell }]), { install: false });
    expect(command.error?.hint).toContain("--network allow=<host>");
    expect(command.error?.hint).not.toContain("evil.test");
    const gate = await run("no-name-gate", spec([{ id: "green", kind: "gate", checks: [{ id: "test", shell }] }]), {
      install: false,
    });
    expect(gate.error?.hint).toContain("--network allow=<host>");
    expect(gate.nodes[0]?.checks?.[0]?.hint).toContain("--network allow=<host>");
    expect(bench.file("no-name-gate", "report.md")).toContain("--network allow=<host>");
    const open = await run("no-name-open", spec([{ id: "get", kind: "command", shell }]), {
      install: false,
      network: "full",
    });
    expect(open.error?.hint).toBeUndefined();
  });
});

describe("an install step on docker", () => {
  test("is closed again before the first node", async ({ skip }) => {
    const reason = whyNoDocker(BUSYBOX);
    if (reason !== undefined) skip(reason);
    await useEngine(BUSYBOX);
    const address = `${HOST}:${registry.port}`;
    const request = `GET http://${address}/${PACKAGE} HTTP/1.1\\r\\nHost: ${address}\\r\\n\\r\\n`;
    // Its wget can't even look up a name: it is linked statically.
    const get = `printf '${request}' | nc 127.0.0.1 3128 > got`;
    const report = await run(
      "docker-installs",
      spec(
        [
          { id: "look", kind: "command", shell: "grep dist-tags got" },
          { id: "try", kind: "command", shell: `${get}; cat got; ! grep dist-tags got` },
        ],
        { image: BUSYBOX, install: ["sh", "-c", get] },
      ),
      { sandboxType: "docker" },
    );
    expect(report.error).toBeUndefined();
    expect(report.nodes.map(({ id, status }) => [id, status])).toEqual([
      ["install-npm", "success"],
      ["look", "success"],
      ["try", "success"],
    ]);
    const found = await run(
      "docker-missing",
      spec([{ id: "go", kind: "command", run: ["true"] }], { image: BUSYBOX }),
      {
        sandboxType: "docker",
      },
    );
    expect(found.nodes[0]).toMatchObject({ id: "install-npm", status: "skipped" });
    expect(found.status).toBe("success");
  });
});
