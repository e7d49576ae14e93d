import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { enforceableLimits } from "../../../../../src/sandbox/backends/local/limits.js";
import { createLocalSandbox } from "../../../../../src/sandbox/backends/local.js";
import { removeSandbox } from "../../../../../src/sandbox/reap.js";
import type { Sandbox } from "../../../../../src/sandbox/types.js";
import { describeUnless } from "../../../../support/describe-unless.js";
import { compileSources, startChild } from "../../../../support/run/compiled.js";
import { createRepository, createScratch, type Scratch } from "../../../../support/scratch.js";

const MIB = 1 << 20;
const reason = enforceableLimits().includes("disk") ? undefined : "not run: no images can be mounted here";

let compiled: { directory: string; remove(): void };
let scratch: Scratch;
let repo: string;
beforeAll(() => {
  compiled = compileSources({ withGuests: true });
});
afterAll(() => compiled.remove());
beforeEach(() => {
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
});
afterEach(() => scratch.remove());

/** Mounts of this test's home, and of one sandbox. */
const mountsOf = (id: string): string[] =>
  readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes(id));
/** Images of this test's home that a loop device has. */
const loops = (): string[] =>
  readdirSync("/sys/block")
    .map((name) => join("/sys/block", name, "loop", "backing_file"))
    .filter((path) => existsSync(path))
    .map((path) => readFileSync(path, "utf8"))
    .filter((file) => file.startsWith(scratch.home));
const fill = async (sandbox: Sandbox, path: string): Promise<{ exitCode: number; stderr: string }> =>
  await sandbox.exec({ argv: ["dd", "if=/dev/zero", `of=${path}`, "bs=65536", "count=1024"] });
const kinds: readonly [string, () => Parameters<typeof createLocalSandbox>[0]][] = [
  ["an empty directory", () => ({})],
  ["a copy", () => ({ repo, workspace: "copy" })],
  ["an overlay", () => ({ repo, workspace: "overlay" })],
];

describeUnless(reason, "limits.disk", {}, () => {
  test('refuses keep "all": a kept $HOME and /tmp would not be counted', async () => {
    const opening = createLocalSandbox({ keep: "all", limits: { disk: 16 * MIB } });
    await expect(opening).rejects.toMatchObject({
      code: "unsupported",
      message: expect.stringContaining("limits.disk") as string,
      hint: expect.stringContaining("keep: true") as string,
    });
    expect(readdirSync(scratch.home)).not.toContain("sandboxes");
  });

  test.each(kinds)(
    "%s: everything on disk together is bounded, on the host too, and nothing is left",
    async (_, how) => {
      const limits = { disk: 16 * MIB };
      const sandbox = await createLocalSandbox({ ...how(), limits });
      const image = join(scratch.home, "sandboxes", sandbox.id, "disk.img");
      try {
        const first = await fill(sandbox, "large");
        expect(first.exitCode).not.toBe(0);
        expect(first.stderr).toContain("No space left on device");
        if (how()?.repo !== undefined)
          expect((await fill(sandbox, "/glovebox/git/large")).stderr).toContain("No space left");
        await expect(sandbox.writeFile("more", Buffer.alloc(2 * MIB))).rejects.toMatchObject({ code: "no_space" });
        expect((await sandbox.stat("large"))?.size).toBeGreaterThan(10 * MIB);
        expect(statSync(image).blocks * 512).toBeLessThanOrEqual(limits.disk);
        expect(statSync(image).size).toBe(limits.disk);
        await sandbox.deleteFile("large");
        await sandbox.shell("rm -f /glovebox/git/large");
        await sandbox.writeFile("more", Buffer.alloc(2 * MIB));
      } finally {
        await sandbox.teardown();
      }
      expect([existsSync(image), existsSync(sandbox.workDir), mountsOf(sandbox.id)]).toEqual([false, false, []]);
      await expect.poll(loops).toEqual([]);
    },
  );

  test.each(kinds)("%s: forks, snapshots and reopened sandboxes have the same bound", async (_, how) => {
    const limits = { disk: 24 * MIB };
    const first = await createLocalSandbox({ ...how(), limits, keep: true });
    await first.writeFile("mine", "1");
    const saved = await first.snapshot();
    await first.writeFile("mine", "2");
    const [fork] = (await first.fork({ count: 1 })) as [Sandbox];
    await first.restore(saved);
    expect(await first.readFile("mine")).toBe("1");
    expect(await fork.readFile("mine")).toBe("2");
    expect((await fill(fork, "large")).stderr).toContain("No space left");
    await fork.teardown();
    await removeSandbox(fork.id);
    await first.teardown();
    expect(mountsOf(first.id)).toEqual([]);
    const second = await createLocalSandbox({ id: first.id });
    expect(await second.readFile("mine")).toBe("1");
    expect(second.capabilities.limits).toContain("disk");
    expect((await fill(second, "large")).stderr).toContain("No space left");
    await second.teardown();
    await removeSandbox(first.id);
    expect([mountsOf(first.id), mountsOf(fork.id)]).toEqual([[], []]);
    await expect.poll(loops).toEqual([]);
  });

  test.each(kinds)("%s: a manager that is killed leaves what the next reap unmounts and removes", async (_, how) => {
    const options = JSON.stringify({ ...how(), limits: { disk: 8 * MIB } });
    const victim = startChild(compiled.directory, "hold-sandbox.mjs", [options, `glovebox-disk-${process.pid}`]);
    const { id, workDir } = JSON.parse(await victim.line()) as { id: string; workDir: string };
    victim.kill();
    await victim.ended;
    expect(mountsOf(id).length).toBeGreaterThan(0);
    const reaper = startChild(compiled.directory, "reap.mjs", []);
    expect(JSON.parse(await reaper.line())).toMatchObject({ removed: [id], failed: [] });
    expect([existsSync(workDir), mountsOf(id), readdirSync(join(scratch.home, "sandboxes"))]).toEqual([false, [], []]);
    await expect.poll(loops).toEqual([]);
  });

  test.each([
    [{ disk: MIB - 1 }, /limits\.disk: expected at least 1048576.*got 1048575/],
    [{ disk: 8 * 1024 ** 4 + 1 }, /limits\.disk: expected at most 8796093022208/],
  ])("a size that can't be is refused: %j", async (limits, message) => {
    await expect(createLocalSandbox({ limits })).rejects.toThrow(message);
  });
});

describe("limits.disk is refused with the reason", () => {
  test.each([
    ["in a worktree", () => ({ repo }), /a worktree is a plain directory|only root/],
    ["in the user's directory", () => ({ baseDir: scratch.path }), /a directory of yours has no quota/],
    ["without isolation", () => ({ isolation: "none" as const }), /without isolation a command can write anywhere/],
  ])("%s", async (_, how, message) => {
    const opening = createLocalSandbox({ ...how(), limits: { disk: 8 * MIB } });
    await expect(opening).rejects.toMatchObject({ code: "unsupported", hint: expect.any(String) as string });
    await expect(opening).rejects.toThrow(message);
  });
});
