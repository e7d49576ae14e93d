import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { hostGit } from "./host-git.js";
import { INSIDE_GIT } from "./private-git.js";
import type { Repository } from "./repository.js";

/** Writes the files of a commit into a new directory, without a worktree of the repository being registered, and the index that belongs to them. */
export async function checkOut(...args: Parameters<typeof beginCheckOut>): Promise<void> {
  await (await beginCheckOut(...args)).filled;
}

/** As `checkOut`; the files are still being written when the directories are there. */
export async function beginCheckOut(
  repository: Repository,
  sha: string,
  places: { tree: string; index: string },
  signal?: AbortSignal,
): Promise<{ filled: Promise<void> }> {
  const { tree, index } = places;
  await mkdir(tree, { recursive: true, mode: 0o700 });
  await mkdir(index, { recursive: true, mode: 0o700 });
  // What the inside finds here; a read-only file is bound over it.
  await writeFile(join(tree, ".git"), `gitdir: ${INSIDE_GIT}\n`, { mode: 0o644 });
  const filled = writeFiles(sha, { gitDir: repository.gitDir, tree, index: join(index, "index") }, signal);
  filled.catch(() => undefined);
  return { filled };
}

/** A full checkout whatever the repository says: what is not there could not be told from what was deleted inside. */
const FULL = {
  "core.sparseCheckout": "false",
  "index.sparse": "false",
  "core.splitIndex": "false",
  "index.version": "2",
};

/** Writes the files of a commit into an empty directory of the host's, and the index: that of the git directory, or another one. */
export async function writeFiles(
  sha: string,
  places: { gitDir: string; tree: string; index?: string },
  signal?: AbortSignal,
): Promise<void> {
  const { gitDir, tree, index } = places;
  await hostGit(["read-tree", "--reset", "-u", sha], {
    ...{ cwd: tree, gitDir, workTree: tree, config: FULL, signal, interruptible: true },
    ...(index !== undefined && { env: { GIT_INDEX_FILE: index } }),
  });
}
