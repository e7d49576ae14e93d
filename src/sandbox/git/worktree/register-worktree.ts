import { existsSync } from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { toSandboxError } from "../../../../contracts/errors.js";
import { failpoint } from "../../../machine/failpoint.js";
import { repositoryGit } from "../repository.js";

/** A worktree that git is to know. */
export interface NewEntry {
  /** The git directory that all worktrees share. */
  shared: string;
  /** Name of the entry, which must be free. */
  name: string;
  /** An existing empty directory. */
  path: string;
  /** An existing branch that is checked out nowhere. */
  branch: string;
  signal?: AbortSignal | undefined;
}

/** Where an entry lies before and after git can see it. */
export function hiddenEntry(shared: string, name: string): string {
  return join(shared, `glovebox-${name}`);
}

/**
 * Makes a directory a worktree without files, and gives its own git directory.
 *
 * Its entry appears by one `rename`. Git's own way is to write it file by file, and whoever runs git in the repository at
 * that moment, as its user may, fails because of a file that is still empty.
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
    // First, because an entry whose directory does not lead back to it may be pruned by anybody.
    await writeFile(join(path, ".git"), `gitdir: ${entry}\n`);
    await failpoint("create.drafted");
    await mkdir(join(shared, "worktrees"), { recursive: true });
    await rename(hidden, entry);
    return entry;
  } catch (error) {
    throw toSandboxError(error, { operation: "worktree" });
  }
}

/** For a way of storing refs in which an entry is more than these files. */
async function registerByGit({ shared, name, path, branch, signal }: NewEntry): Promise<string> {
  // Relative links between the worktree and the repository would not survive being mounted elsewhere.
  const config = { "worktree.useRelativePaths": "false" };
  const add = ["worktree", "add", "--quiet", "--no-checkout", "--", path, branch];
  await mkdir(join(shared, "worktrees"), { recursive: true });
  await repositoryGit(add, shared, { config, signal });
  const entry = join(shared, "worktrees", name);
  // It was made through our view of the repository, and must not depend on that.
  await writeFile(join(path, ".git"), `gitdir: ${entry}\n`);
  return entry;
}
