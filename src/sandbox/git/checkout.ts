import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { hostGit } from "./host-git.js";
import { INSIDE_GIT } from "./private-git.js";
import type { Repository } from "./repository.js";

/**
 * Writes the files of a commit into a new directory, without a worktree of the repository being registered, and the index
 * that belongs to them.
 */
export async function checkOut(
  repository: Repository,
  sha: string,
  places: { tree: string; index: string },
  signal?: AbortSignal,
): Promise<void> {
  const { tree, index } = places;
  await mkdir(tree, { recursive: true, mode: 0o700 });
  await mkdir(index, { recursive: true, mode: 0o700 });
  const opts = {
    cwd: tree,
    gitDir: repository.gitDir,
    workTree: tree,
    env: { GIT_INDEX_FILE: join(index, "index") },
    config: {
      "core.sparseCheckout": "false",
      "index.sparse": "false",
      "core.splitIndex": "false",
      "index.version": "2",
    },
    signal,
    interruptible: true,
  };
  await hostGit(["read-tree", sha], opts);
  await hostGit(["checkout-index", "--all", "--force", "--quiet", "--index"], opts);
  // What the inside finds here; a read-only file is bound over it.
  await writeFile(join(tree, ".git"), `gitdir: ${INSIDE_GIT}\n`, { mode: 0o644 });
}
