import { appendFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalSandbox } from "../../dist/src/index.js";
import { interleave, ratioGoal, row } from "../parts/measure.mjs";
import { fileAt, git, repositoryOf } from "../parts/repositories.mjs";

const FILES = 50_000;
const edited = Array.from({ length: 10 }, (_, n) => fileAt(n * 4999));

/** Finding ten changed files of fifty thousand, against `git status` in an ordinary worktree. */
export async function measure({ isQuick, scratch }) {
  const repo = await repositoryOf(FILES, scratch);
  const native = join(tmpdir(), "bench-changes");
  await git(repo, "worktree", "add", "--quiet", "-b", "bench-changes", native);
  const sandboxes = {
    overlay: await createLocalSandbox({ repo, workspace: "overlay" }),
    worktree: await createLocalSandbox({ repo }),
  };
  try {
    for (const path of edited) {
      await appendFile(join(native, path), "// edited\n");
      for (const sandbox of Object.values(sandboxes)) {
        await sandbox.writeFile(path, `${await sandbox.readFile(path)}// edited\n`);
      }
    }
    const expectTen = (count) => {
      if (count !== edited.length) throw new Error(`${count} files are told to be changed`);
    };
    const samples = await interleave(
      {
        overlay: async () => expectTen((await sandboxes.overlay.changes()).files.length),
        worktree: async () => expectTen((await sandboxes.worktree.changes()).files.length),
        native: async () => expectTen((await git(native, "status", "--porcelain")).trimEnd().split("\n").length),
      },
      { rounds: isQuick ? 4 : 20 },
    );
    const rows = [
      row("glovebox, changes, overlay", samples.overlay),
      row("glovebox, changes, worktree", samples.worktree),
      row("git status, native worktree", samples.native),
    ];
    const goals = [
      ratioGoal("changes of 10 in 50,000 files, overlay", { ours: rows[0], other: rows[2], atMost: 2, floor: rows[2] }),
      ratioGoal("changes of 10 in 50,000 files, worktree", {
        ours: rows[1],
        other: rows[2],
        atMost: 2,
        floor: rows[2],
      }),
    ];
    return { rows, goals };
  } finally {
    for (const sandbox of Object.values(sandboxes)) await sandbox.teardown();
    await git(repo, "worktree", "remove", "--force", native);
    await git(repo, "branch", "-D", "bench-changes");
  }
}
