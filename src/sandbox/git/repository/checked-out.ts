import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { repositoryGit } from "./repository-git.js";
import { readRepositorySettings } from "./repository-settings.js";
import { openView } from "./repository-view.js";
import { readUntrustedText } from "./untrusted-file.js";

/** Where a branch is checked out, in any worktree of a repository. */
export async function checkedOutAt(shared: string, branch: string): Promise<string | undefined> {
  if (existsSync(join(shared, "reftable"))) return await askGit(shared, branch);
  const { isBare = basename(shared) !== ".git" } = await readRepositorySettings(shared);
  if (!isBare && isHead(shared, branch)) return mainWorktree(shared);
  for (const name of await worktreeNames(shared)) {
    const entry = join(shared, "worktrees", name);
    if (isHead(entry, branch)) return dirname(resolve(entry, readUntrustedText(join(entry, "gitdir")).trimEnd()));
  }
  return undefined;
}

/** For a repository whose HEADs are no files. */
async function askGit(shared: string, branch: string): Promise<string | undefined> {
  const list = await repositoryGit(["worktree", "list", "--porcelain"], shared);
  for (const block of list.split("\n\n")) {
    const lines = block.split("\n");
    if (!lines.includes(`branch refs/heads/${branch}`)) continue;
    const path = lines[0]?.replace(/^worktree /, "");
    return path === (await openView(shared)) ? mainWorktree(shared) : path;
  }
  return undefined;
}

function mainWorktree(shared: string): string {
  return basename(shared) === ".git" ? dirname(shared) : shared;
}

function isHead(gitDir: string, branch: string): boolean {
  return readUntrustedText(join(gitDir, "HEAD")).trimEnd() === `ref: refs/heads/${branch}`;
}

/** The names of a repository's linked worktrees. */
export async function worktreeNames(gitDir: string): Promise<string[]> {
  try {
    return await readdir(join(gitDir, "worktrees"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
