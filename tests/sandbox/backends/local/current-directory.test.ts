import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SandboxError } from "../../../../contracts/errors.js";
import { createLocalSandbox } from "../../../../src/sandbox/backends/local.js";
import type { Sandbox, SandboxOptions } from "../../../../src/sandbox/types.js";
import { compileProbe } from "../../../support/local/manager.js";
import { createRepository, createScratch, type Scratch } from "../../../support/scratch.js";

const PROBE = "current-directory";
let scratch: Scratch;
let programs: string;
let repo: string;
beforeAll(() => {
  scratch = createScratch();
  programs = mkdtempSync(join(tmpdir(), "glovebox-programs-"));
  compileProbe(PROBE, programs);
  repo = createRepository(join(scratch.path, "repo"));
});
afterAll(() => {
  scratch.remove();
  rmSync(programs, { recursive: true });
});

async function open(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await createLocalSandbox(options);
  await sandbox.writeFile(PROBE, readFileSync(join(programs, PROBE)), { mode: 0o755 });
  await sandbox.makeDirectory("deep/er");
  await sandbox.shell("ln -s deep/er link");
  return sandbox;
}

/** What the kernel calls the directory that a command starts in. */
async function directoryOf(sandbox: Sandbox, cwd?: string): Promise<string> {
  const argv = [`${sandbox.workDir}/${PROBE}`];
  const { stdout, stderr } = await sandbox.exec({ argv, ...(cwd !== undefined && { cwd }) });
  return `${stdout}${stderr}`.trimEnd();
}

async function expectReachable(sandbox: Sandbox, workDir: string): Promise<void> {
  // The first command starts a supervisor, and the others use it again.
  expect(await directoryOf(sandbox)).toBe(workDir);
  expect(await directoryOf(sandbox, "deep")).toBe(`${workDir}/deep`);
  expect(await directoryOf(sandbox, "link")).toBe(`${workDir}/deep/er`);
  expect(await directoryOf(sandbox)).toBe(workDir);
}

const KINDS: readonly [name: string, options: () => SandboxOptions][] = [
  ["an empty directory", () => ({})],
  ["a chosen place", () => ({ workDir: "/workspace/app" })],
  ["worktree", () => ({ repo, workspace: "worktree" })],
  ["overlay", () => ({ repo, workspace: "overlay" })],
  ["copy", () => ({ repo, workspace: "copy" })],
  ["no pool, as there may be few processes only", () => ({ limits: { pids: 16 } })],
];

test.each(KINDS)("the kernel names the directory of a command: %s", async (_name, options) => {
  await using sandbox = await open(options());
  await expectReachable(sandbox, sandbox.workDir);
  await using fork = await sandbox.fork();
  await expectReachable(fork, sandbox.workDir);
  await sandbox.setWorkdir("deep");
  expect(await directoryOf(sandbox)).toBe(`${sandbox.workDir}/deep`);
});

test("the kernel names the directory of a command: a directory of yours", async () => {
  const baseDir = join(scratch.path, "mine");
  mkdirSync(baseDir);
  await using sandbox = await open({ baseDir });
  await expectReachable(sandbox, baseDir);
});

test("the kernel names the directory of a command: a command that is too long for a pooled supervisor, and a terminal", async () => {
  await using sandbox = await open();
  const argv = [`${sandbox.workDir}/${PROBE}`];
  const long = await sandbox.exec({ argv, cwd: "deep", env: { LONG: "x".repeat(60_000) } });
  expect(long.stdout).toBe(`${sandbox.workDir}/deep\n`);
  const terminal = await sandbox.spawn({ argv, cwd: "deep", pty: { cols: 80, rows: 24 } });
  expect((await text(terminal.stdout)).trimEnd()).toBe(`${sandbox.workDir}/deep`);
});

test("a directory whose name is longer than the kernel can return is refused: it could only be entered from outside", async () => {
  await using sandbox = await open();
  // Short enough as it is, and too long below any work directory.
  const deep = [...Array.from({ length: 16 }, (_, i) => `${i}`.padStart(253, "d")), "e".repeat(25)].join("/");
  await sandbox.makeDirectory(deep);
  await expect(sandbox.exec({ argv: ["touch", "here"], cwd: deep })).rejects.toMatchObject({ code: "invalid_path" });
  expect((await sandbox.shell("find . -name here | wc -l")).stdout.trim()).toBe("0");
});

test("a directory that is swapped for a link while a command starts is never left for where the link leads", async () => {
  await using sandbox = await open();
  await sandbox.shell("mkdir place && ln -s /usr/share outside");
  const racer = await sandbox.spawn({ argv: [`./${PROBE}`, "place", "outside"] });
  const places = new Set([`${sandbox.workDir}/place`, `${sandbox.workDir}/outside`]);
  let [entered, refused] = [0, 0];
  while (entered < 100 || refused < 20) {
    try {
      const found = await directoryOf(sandbox, "place");
      expect(places).toContain(found);
      entered++;
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error;
      expect(["path_confinement", "not_found"]).toContain(error.code);
      refused++;
    }
  }
  await racer.kill();
});
