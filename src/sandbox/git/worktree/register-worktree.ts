import { existsSync } from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { toSandboxError } from "../../../../contracts/errors.js";
import { failpoint } from "../../../machine/failpoint.js";
import { repositoryGit } from "../repository.js";

/** What `registerWorktree` needs. */
export interface NewEntry {
  /** The git directory that all worktrees share. */
  shared: string;
  /** The name of the entry. Must be free. */
  name: string;
  /** An existing empty directory. */
  path: string;
  /** An existing branch that is checked out nowhere. */
  branch: string;
  signal?: AbortSignal | undefined;
}

/** Where an entry is while git must not see it. */
export function hiddenEntry(shared: string, name: string): string {
  return join(shared, `glovebox-${name}`);
}

/**
 * Makes a directory a worktree without files, and returns its git directory.
 *
 * Its entry appears by one `rename`. Git itself writes it file by file, and another git in the repository can fail meanwhile because a file
 * is still empty.
 */
export async function registerWorktree(opts: NewEntry): Promise<string> {
  const { shared, name, path, branch } = opts;
  if (existsSync(join(shared, "reftable"))) return await registerByGit(opts);
  const hidden = hiddenEntry(shared, name);
  const entry = join(shared, "worktrees", name);
  try {
    await mkdir(hidden);
    await writeFile(join(hidden, "HEAD"), `ref: refs/heads/${branch}\n`);
    await writeFile(join(hidden, "commondir"), "../..\n");
    await writeFile(join(hidden, "gitdir"), `${join(path, ".git")}\n`);
    // First: git prunes an entry whose directory does not lead back to it.
    await writeFile(join(path, ".git"), `gitdir: ${entry}\n`);
    await failpoint("create.drafted");
    await mkdir(join(shared, "worktrees"), { recursive: true });
    await rename(hidden, entry);
    return entry;
  } catch (error) {
    throw toSandboxError(error, { operation: "worktree" });
  }
}

/** For a ref storage in which an entry is more than these files. */
async function registerByGit({ shared, name, path, branch, signal }: NewEntry): Promise<string> {
  // Relative links between worktree and repository would break when they are mounted elsewhere.
  const config = { "worktree.useRelativePaths": "false" };
  const add = ["worktree", "add", "--quiet", "--no-checkout", "--", path, branch];
  await mkdir(join(shared, "worktrees"), { recursive: true });
  await repositoryGit(add, shared, { config, signal });
  const entry = join(shared, "worktrees", name);
  // Git made it through a view, and it must not depend on that.
  await writeFile(join(path, ".git"), `gitdir: ${entry}\n`);
  return entry;
}
