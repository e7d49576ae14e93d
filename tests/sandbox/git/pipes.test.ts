import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { createRepository, createScratch, type Scratch } from "../../support/scratch.js";

let scratch: Scratch;
let repo: string;
beforeAll(() => {
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
});
afterAll(() => scratch.remove());

/** A pipe is found out in half a second; the rest of the two seconds that we promise is for a busy machine. */
const PROMISED = 2_000;

async function withinTwoSeconds<T>(work: () => Promise<T>): Promise<T> {
  const started = performance.now();
  try {
    return await work();
  } finally {
    expect(performance.now() - started).toBeLessThan(PROMISED);
  }
}

describe("a pipe in git's way is found out within two seconds", () => {
  test.each([
    ["of the files", "mkdir -p deep && mkfifo deep/.gitignore && echo new > deep/file"],
    ["behind a link", "git init -q nested && mkfifo pipe && ln -s ../../pipe nested/.git/packed-refs"],
    [
      "behind a link to a directory",
      "git init -q nested && mv nested/.git store && ln -s ../store nested/.git && mkfifo store/packed-refs",
    ],
  ])("%s", async (_where, script) => {
    await using sandbox = await createLocalSandbox({ repo });
    await sandbox.shell(script);
    const refused = withinTwoSeconds(() => sandbox.changes());
    await expect(refused).rejects.toMatchObject({ code: "not_regular_file" });
  });

  test("of the source, before anything is made", async () => {
    const source = createRepository(join(scratch.path, "source"));
    execFileSync("mkfifo", [join(source, ".git", "refs", "heads", "pipe")]);
    const refused = withinTwoSeconds(() => createLocalSandbox({ repo: source }));
    await expect(refused).rejects.toMatchObject({ code: "tampered" });
  });

  test("of the git inside", async () => {
    await using sandbox = await createLocalSandbox({ repo });
    await sandbox.shell("rm /glovebox/git/HEAD && mkfifo /glovebox/git/HEAD");
    await withinTwoSeconds(() => sandbox.snapshot());
  });

  test("and one that nobody waits at is not blamed when git takes its time", async () => {
    await using sandbox = await createLocalSandbox({ repo });
    await sandbox.shell("mkdir .github elsewhere && mkfifo .github/pipe elsewhere/pipe && ln -s elsewhere .gitlink");
    await sandbox.shell("mkdir many && cd many && seq 30000 | xargs touch");
    const started = performance.now();
    expect((await sandbox.changes()).files.length).toBeGreaterThan(30_000);
    // Else nobody has looked, and the test says nothing.
    expect(performance.now() - started).toBeGreaterThan(500);
  });
});

describe.concurrent("pipes in the places that git reads", () => {
  test.each(["worktree", "overlay", "copy"] as const)(
    "of the files, in the workspace %s: refused by name, and the sandbox goes on",
    async (workspace) => {
      await using sandbox = await createLocalSandbox({ repo, workspace });
      await sandbox.shell("mkdir -p deep && mkfifo deep/.gitignore && echo new > deep/file");
      const refusal = { code: "not_regular_file", message: expect.stringContaining('"deep/.gitignore" is a pipe') };
      await expect(sandbox.changes()).rejects.toMatchObject(refusal);
      await expect(sandbox.snapshot()).rejects.toMatchObject(refusal);
      await sandbox.shell("rm deep/.gitignore");
      expect((await sandbox.changes()).files.map(({ path }) => path)).toEqual(["deep/file"]);
    },
  );

  test.each(["worktree", "overlay", "copy"] as const)(
    "of the git inside, in the workspace %s: its commits are left out, told, and a restore mends it",
    async (workspace) => {
      const told: string[] = [];
      await using sandbox = await createLocalSandbox({
        repo,
        workspace,
        onEvent: ({ message }) => void told.push(message),
      });
      await sandbox.writeFile("kept", "kept");
      const first = await sandbox.snapshot();
      await sandbox.shell("rm /glovebox/git/HEAD && mkfifo /glovebox/git/HEAD");
      await sandbox.writeFile("later", "later");
      const second = await sandbox.snapshot();
      expect(told).toContainEqual(expect.stringMatching(/commits of the sandbox are left out: .*HEAD" is a pipe/));
      await using fork = await sandbox.fork();
      expect(await fork.readFile("later")).toBe("later");
      await sandbox.restore(first);
      expect([await sandbox.readFile("kept"), await sandbox.readFile("later")]).toEqual(["kept", null]);
      expect((await sandbox.exec({ argv: ["git", "status", "--short"] })).stdout).toBe("?? kept\n");
      await sandbox.restore(second);
      expect(await sandbox.readFile("later")).toBe("later");
    },
  );

  test.each([
    ["to the pipe", "ln -s ../../pipe nested/.git/packed-refs", "nested/.git/packed-refs"],
    [
      "to a directory with it",
      "mv nested/.git elsewhere && ln -s ../elsewhere nested/.git && mv pipe elsewhere/packed-refs",
      "nested/.git/packed-refs",
    ],
  ])("behind a link %s: refused by name, and the sandbox goes on", async (_, script, name) => {
    await using sandbox = await createLocalSandbox({ repo });
    await sandbox.shell(`git init -q nested && mkfifo pipe && ${script}`);
    const refusal = { code: "not_regular_file", message: expect.stringContaining(`"${name}" is a pipe`) };
    await expect(sandbox.changes()).rejects.toMatchObject(refusal);
    await sandbox.shell("rm -rf nested elsewhere pipe");
    expect((await sandbox.changes()).files).toEqual([]);
  });

  test("where a file leads, and nobody looks: the call ends at its time, and holds the sandbox no longer than that", async () => {
    await using sandbox = await createLocalSandbox({ repo, operationTimeout: 5_000 });
    await sandbox.shell("git init -q nested && mv nested/.git store && echo 'gitdir: ../store' > nested/.git");
    await sandbox.shell("rm -f store/packed-refs && mkfifo store/packed-refs");
    await expect(sandbox.changes()).rejects.toMatchObject({ code: "unavailable" });
    await sandbox.shell("rm -rf nested store");
    expect((await sandbox.changes()).files).toEqual([]);
  });
});
