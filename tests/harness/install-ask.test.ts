import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { isBelowNpm } from "../../src/harness/install/ask-tool.js";
import { planInstall } from "../../src/harness/install/plan-install.js";
import type { Question } from "../../src/harness/install/tool.js";
import { pip } from "../../src/harness/install/tools/python.js";
import { userConfig } from "../../src/harness/install/user-config.js";
import { findProgram, trustedDirectories } from "../../src/machine/trusted-programs.js";
import { createFakeTool, createFakeTools } from "../support/harness/fake-tools.js";
import { createScratch } from "../support/scratch.js";

const scratch = createScratch();
afterAll(() => scratch.remove());
const folder = (): string => mkdtempSync(join(scratch.path, "ask-"));
const ASK: Question = { program: "npm", args: ["config", "get", "registry"] };
const ADDRESS = "https://registry.example/";
const SAYS = { npm: [ADDRESS] };
const NOTHING = { reason: "npm does not say where it gets packages from" };

describe("a tool that is asked", () => {
  test("runs in the root directory, with the user's variables and none of a surrounding npm or of the repository", async () => {
    const [bin, repository] = [folder(), folder()];
    const seen = join(bin, "seen");
    createFakeTool(bin, "npm", `{ pwd; echo "$@"; /usr/bin/env; } > ${seen}\necho ${ADDRESS}`);
    const env = {
      PATH: [join(repository, "bin"), bin, "relative"].join(delimiter),
      NPM_CONFIG_USERCONFIG: join(bin, "npmrc"),
      MINE: "1",
      npm_execpath: "/usr/lib/npm",
      npm_config_registry: "https://evil.test/",
      NODE_OPTIONS: "--require=evil",
      NPM_CONFIG_GLOBALCONFIG: join(repository, "npmrc"),
    };
    const config = userConfig(repository, { env, home: bin });
    expect(await config.ask(ASK)).toEqual({ lines: [ADDRESS] });
    const [cwd, args, ...variables] = readFileSync(seen, "utf8").trim().split("\n");
    expect([cwd, args]).toEqual(["/", "config get registry"]);
    expect(variables).toEqual(
      expect.arrayContaining([`PATH=${bin}`, `NPM_CONFIG_USERCONFIG=${join(bin, "npmrc")}`, "MINE=1"]),
    );
    expect(variables.join("\n")).not.toMatch(/evil|npm_execpath|GLOBALCONFIG/);
  });

  test("is never a program of the repository", async () => {
    const [bin, repository] = [folder(), folder()];
    const ran = join(scratch.path, "ran");
    const evil = createFakeTool(repository, "npm", `echo 1 > ${ran}\necho https://evil.test/`);
    const modules = join(folder(), "node_modules", ".bin");
    mkdirSync(modules, { recursive: true });
    createFakeTool(modules, "npm", `echo 1 > ${ran}\necho https://evil.test/`);
    const linked = join(folder(), "linked");
    symlinkSync(repository, linked);
    symlinkSync(evil, join(bin, "npm"));
    for (const place of [repository, linked, bin, modules]) {
      const config = userConfig(repository, { env: { PATH: place }, home: scratch.path });
      expect(await config.ask(ASK), place).toEqual({ reason: "there is no npm in PATH" });
    }
    expect(existsSync(ran)).toBe(false);
  });

  test("is not asked when it would read a file of the repository", async () => {
    const [home, repository] = [folder(), folder()];
    const env = { PATH: createFakeTools(folder(), SAYS) };
    writeFileSync(join(repository, "npmrc"), "");
    symlinkSync(join(repository, "npmrc"), join(home, ".npmrc"));
    const config = userConfig(repository, { env, home });
    expect(config.read(join(home, ".npmrc"))).toBeUndefined();
    expect(await config.ask(ASK)).toEqual({ reason: `${join(home, ".npmrc")} lies in the repository` });
    const within = userConfig(repository, { env, home: repository });
    expect(await within.ask(ASK)).toEqual({ reason: `${repository} lies in the repository` });
  });

  test.each([
    ["a word", "echo undefined"],
    ["another scheme", "echo file:///etc/passwd"],
    ["nothing", "true"],
    ["a failure", `echo ${ADDRESS}; exit 1`],
    ["control characters", `echo ${ADDRESS}; printf '\\033[2J'; echo x`],
    ["a line that is too long", `echo ${ADDRESS}; head -c 3000 /dev/zero | tr '\\0' a`],
    ["no end", `while echo ${ADDRESS}; do :; done`],
  ])("and prints %s has no answer", async (_, script) => {
    const bin = folder();
    createFakeTool(bin, "npm", `PATH=/usr/bin:/bin\n${script}`);
    expect(await userConfig(undefined, { env: { PATH: bin }, home: bin }).ask(ASK)).toEqual(NOTHING);
  });

  test("is cut off at its deadline, with all that it has started", async () => {
    const bin = folder();
    const pids = join(bin, "pids");
    createFakeTool(
      bin,
      "npm",
      `PATH=/usr/bin:/bin\nsleep 600 &\necho $$ $! > ${pids}.new\nmv ${pids}.new ${pids}\nwait`,
    );
    const asked = userConfig(undefined, { env: { PATH: bin }, home: bin, deadline: 10_000 }).ask(ASK);
    await expect.poll(() => existsSync(pids), { timeout: 30_000 }).toBe(true);
    expect(await asked).toEqual(NOTHING);
    for (const pid of readFileSync(pids, "utf8").trim().split(" ")) {
      await expect.poll(() => isRunning(pid), { timeout: 30_000 }).toBe(false);
    }
    const stopped = new AbortController();
    stopped.abort(new Error("stopped by the caller"));
    const config = userConfig(undefined, { env: { PATH: bin }, home: bin, signal: stopped.signal });
    await expect(config.ask(ASK)).rejects.toThrow("stopped by the caller");
  }, 60_000);

  test("without the user's settings is asked only once", async () => {
    const bin = folder();
    const seen = join(bin, "seen");
    createFakeTool(bin, "npm", `/usr/bin/env >> ${seen}\necho ${ADDRESS}`);
    const env = { PATH: bin, NPM_CONFIG_REGISTRY: "https://mirror.test/", npm_config_registry: "https://mirror.test/" };
    const question = { ...ASK, isUnconfigured: true };
    for (const _ of [1, 2]) {
      expect(await userConfig(undefined, { env, home: bin }).ask(question)).toEqual({ lines: [ADDRESS] });
    }
    const text = readFileSync(seen, "utf8");
    expect(text.match(/^PATH=/gm)).toHaveLength(1);
    expect(text).not.toContain("mirror.test");
  });
});

test("yarn 1 answers for a later yarn, whose settings it does not know", async () => {
  const bin = folder();
  createFakeTool(bin, "yarn", `[ "$3" = registry ] && echo https://yarn.example/ || echo undefined`);
  const lock = '__metadata:\n  version: 8\n"x@npm:1":\n  version: 1.0.0\n  resolution: "x@npm:1.0.0"\n';
  const { steps } = await planInstall({
    files: { read: async (name) => (name === "yarn.lock" ? lock : undefined) },
    config: userConfig(undefined, { env: { PATH: bin }, home: bin }),
    network: "none",
    copied: [],
  });
  expect(steps).toMatchObject([{ reach: ["yarn.example:443"] }]);
});

describe("the tools of this machine", () => {
  const isThere = (name: string): boolean =>
    findProgram(name, trustedDirectories(process.env["PATH"] ?? "")) !== undefined;
  /** As a terminal has them, even if npm runs the tests. */
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^npm_/.test(name) && !/^npm_config_registry$/i.test(name)),
  );

  test("what npm prints is the host that is reached, and what it replaces", async ({ skip }) => {
    if (!isThere("npm")) skip("npm is not on this machine: not run");
    expect(isBelowNpm(env)).toBe(false);
    const home = folder();
    const variables = {
      ...env,
      HOME: home,
      NPM_CONFIG_USERCONFIG: join(home, "none"),
      NPM_CONFIG_GLOBALCONFIG: join(home, "no"),
    };
    const printed = execFileSync("npm", ["config", "get", "registry"], {
      cwd: "/",
      env: variables,
      encoding: "utf8",
    }).trim();
    const lock = { packages: { "node_modules/x": { version: "1.0.0", resolved: `${printed}x/-/x-1.0.0.tgz` } } };
    const plan = async (more: Record<string, string>) =>
      await planInstall({
        files: { read: async (name) => (name === "package-lock.json" ? JSON.stringify(lock) : undefined) },
        config: userConfig(undefined, { env: { ...variables, ...more }, home }),
        network: "none",
        copied: [],
      });
    const { steps, notes } = await plan({});
    expect(notes).toEqual([]);
    expect(steps[0]?.reach.map((entry) => entry.replace(/:443$/, ""))).toEqual([new URL(printed).hostname]);
    const mirrored = await plan({ NPM_CONFIG_REGISTRY: "https://mirror.test/" });
    expect(mirrored.steps).toMatchObject([{ reach: ["mirror.test:443"] }]);
  }, 60_000);

  test("pip names its index and the place of its files", async ({ skip }) => {
    if (!isThere("pip3") || !isThere("python3")) skip("pip is not on this machine: not run");
    const [question] = pip.asks ?? [];
    const { lines = [] } = question === undefined ? {} : await userConfig(undefined, { env }).ask(question);
    expect(lines.map((line) => new URL(line).protocol)).toEqual(["https:", "https:"]);
  }, 60_000);
});

/** A zombie has ended. */
function isRunning(pid: string): boolean {
  try {
    return !/^\S+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
