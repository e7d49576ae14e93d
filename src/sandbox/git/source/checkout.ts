import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { INSIDE_GIT, type Repository, readUserFilter, repositoryGit } from "../repository.js";

/** Writes the files of a commit into a new directory, without a worktree of the repository being registered, and the index that belongs to them. */
export async function checkOut(...args: Parameters<typeof startCheckOut>): Promise<void> {
  await (await startCheckOut(...args)).filled;
}

/** As `checkOut`; the files are still being written when the directories are there. */
export async function startCheckOut(
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
  const filled = writeFiles(repository, sha, { tree, index: join(index, "index") }, signal);
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

/**
 * Writes the files of a commit into an empty directory of the host's, and their index. Attributes of the files say how they are written, but no
 * filter runs that was not named.
 */
export async function writeFiles(
  { gitDir, filters = [] }: Repository,
  sha: string,
  { tree, index }: { tree: string; index: string },
  signal?: AbortSignal,
): Promise<void> {
  const named = filters.length === 0 ? {} : await namedFilters(gitDir, filters);
  const how = { workTree: tree, index, signal, interruptible: true };
  await repositoryGit(["read-tree", "--reset", "-u", sha], gitDir, { ...how, config: FULL, ...named });
}

/** Filters as the user's own configuration defines them; a filter is a program of the user's and finds the user's files. */
async function namedFilters(
  gitDir: string,
  filters: readonly string[],
): Promise<{ config: Record<string, string>; env: Record<string, string> }> {
  // Git LFS keeps what it has fetched in the repository; from elsewhere nothing is fetched.
  const config: Record<string, string> = { ...FULL, "lfs.storage": join(gitDir, "lfs") };
  for (const name of filters) Object.assign(config, await readUserFilter(name));
  const { HOME = "" } = process.env;
  return { config, env: HOME === "" ? {} : { HOME } };
}
