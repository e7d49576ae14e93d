import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { runtimeDir } from "../../../../src/machine/home.js";
import type { Sandbox, SandboxOptions } from "../../../../src/sandbox/types.js";
import { listSandboxes, openSandbox, reap, removeSandbox } from "../../../../src/sandbox.js";
import { compileSources, startChild } from "../../../support/run/compiled.js";
import { createRepository, createScratch, type Scratch } from "../../../support/scratch.js";

let scratch: Scratch;
let compiled: ReturnType<typeof compileSources>;
beforeAll(() => {
  scratch = createScratch();
  compiled = compileSources({ withGuests: true });
});
afterEach(async () => {
  for (const { id } of await listSandboxes()) await removeSandbox(id);
});
afterAll(() => {
  compiled.remove();
  scratch.remove();
});

async function use<T>(opts: SandboxOptions, work: (sandbox: Sandbox) => Promise<T>): Promise<T> {
  const sandbox = await openSandbox({ backend: "local", ...opts });
  try {
    return await work(sandbox);
  } finally {
    await sandbox.teardown();
  }
}

async function say(sandbox: Sandbox, script: string): Promise<string> {
  const { exitCode, stdout, stderr } = await sandbox.shell(script);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  return stdout;
}

describe('keep: "all"', () => {
  test("does not loosen what confines $HOME and /tmp", async () => {
    const look = `for p in "$HOME" /tmp; do
      grep " $p " /proc/self/mounts | cut -d' ' -f4 | tr , '\\n' | grep -xE 'nosuid|nodev|rw' | sort | tr '\\n' ' '
      stat -c '%a %u:%g' "$p"; touch "$p/x" && stat -c '%u:%g' "$p/x"; done; id -u; id -g`;
    const [plain, all] = [
      await use({}, (sandbox) => say(sandbox, look)),
      await use({ keep: "all" }, (sandbox) => say(sandbox, look)),
    ];
    expect(all).toBe(plain);
    expect(all).toContain("nodev nosuid rw 700 ");
    expect(all).toContain("nodev nosuid rw 1777 ");
  });

  test("is in the ledger's directory, outlives kill -9, and goes with the record", async () => {
    const options = { name: "all", keep: "all", env: { A: "1" } };
    const env = { GLOVEBOX_HOME: scratch.home };
    const child = startChild(
      compiled.directory,
      "claim-name.mjs",
      [JSON.stringify(options), 'echo x > "$HOME/f"; echo y > /tmp/f'],
      env,
    );
    const { id } = JSON.parse(await child.line()) as { id: string };
    child.kill();
    await child.ended;
    expect((await reap()).removed).toEqual([]);
    const read = 'cat "$HOME/f" /tmp/f';
    expect(await use({ id: "all" }, (sandbox) => say(sandbox, read))).toBe("x\ny\n");
    // Once kept with all, it stays so.
    expect(await use({ id: "all", keep: true }, (sandbox) => say(sandbox, read))).toBe("x\ny\n");
    const directory = runtimeDir(id);
    expect(readdirSync(directory)).toEqual(expect.arrayContaining(["home", "tmp"]));
    await use({ id: "all", keep: false }, async (sandbox) => {
      await say(sandbox, 'mkdir -p "$HOME/a/b" && chmod 555 "$HOME/a" && ln -s / /tmp/root && mkfifo /tmp/pipe');
    });
    expect(existsSync(directory)).toBe(false);
  });

  test("can be asked for later; without it the two are empty each time", async () => {
    const { id } = await use({ keep: true }, async (sandbox) => {
      await say(sandbox, 'echo x > "$HOME/f"');
      return sandbox;
    });
    expect(await use({ id, keep: "all" }, (sandbox) => say(sandbox, 'ls "$HOME"; echo y > "$HOME/f"'))).toBe("");
    expect(await use({ id }, (sandbox) => say(sandbox, 'cat "$HOME/f"'))).toBe("y\n");
  });

  test.each(["worktree", "overlay", "copy"] as const)("works with a repository as %s", async (workspace) => {
    const repo = createRepository(join(scratch.path, `repo-${workspace}`));
    const { id } = await use({ repo, workspace, keep: "all" }, async (sandbox) => {
      await say(sandbox, 'echo x > "$HOME/f"; echo y > /tmp/f; echo z > new');
      return sandbox;
    });
    expect(await use({ id }, (sandbox) => say(sandbox, 'cat "$HOME/f" /tmp/f new'))).toBe("x\ny\nz\n");
  });

  test("finds its work directory again, whatever commands put in the way of it", async () => {
    const target = join(scratch.path, "outside");
    mkdirSync(target);
    const data = join(scratch.path, "data");
    mkdirSync(data);
    const mounts = [{ source: data, target: "/tmp/mounted/deep" }];
    const { id, workDir } = await use({ keep: "all", mounts }, async (sandbox) => {
      // A mount point itself can't be moved, but the directories above it can.
      await say(sandbox, `mv /tmp/mounted /tmp/moved && ln -s ${target} /tmp/mounted && echo kept > file`);
      return sandbox;
    });
    expect(workDir.startsWith("/tmp/")).toBe(true);
    const top = workDir.split("/").slice(0, 3).join("/");
    for (const plant of [
      "true",
      `mv ${top} /tmp/elsewhere && ln -s / ${top}`,
      `mv ${top} /tmp/more && echo x > ${top}`,
    ]) {
      await use({ id }, async (sandbox) => {
        expect(await sandbox.readFile("file")).toBe("kept\n");
        expect(
          await say(sandbox, "test -d /tmp/mounted/deep && test ! -L /tmp/mounted && cat file && ls -A /tmp/mounted"),
        ).toBe("kept\ndeep\n");
        await sandbox.shell(plant);
      });
    }
    expect(await use({ id }, (sandbox) => sandbox.readFile("file"))).toBe("kept\n");
    expect(readdirSync(target)).toEqual([]);
  });
});
