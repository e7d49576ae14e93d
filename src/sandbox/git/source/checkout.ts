import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { INSIDE_GIT, type Repository, readUserFilter, repositoryGit } from "../repository.js";

/** Writes the files of a commit and their index into new directories, without registering a worktree. */
export async function checkOut(...args: Parameters<typeof startCheckOut>): Promise<void> {
  await (await startCheckOut(...args)).filled;
}

/** As `checkOut`, but returns when the directories exist; `filled` resolves when the files are written. */
export async function startCheckOut(
  repository: Repository,
  sha: string,
  places: { tree: string; index: string },
  signal?: AbortSignal,
): Promise<{ filled: Promise<void> }> {
  const { tree, index } = places;
  await mkdir(tree, { recursive: true, mode: 0o700 });
  await mkdir(index, { recursive: true, mode: 0o700 });
  // For the sandbox; a read-only file is bound over it.
  await writeFile(join(tree, ".git"), `gitdir: ${INSIDE_GIT}\n`, { mode: 0o644 });
  const filled = writeFiles(repository, sha, { tree, index: join(index, "index") }, signal);
  filled.catch(() => undefined);
  return { filled };
}

/** Always a full checkout: a missing file would look as if the sandbox had deleted it. */
const FULL = {
  "core.sparseCheckout": "false",
  "index.sparse": "false",
  "core.splitIndex": "false",
  "index.version": "2",
};

/** Writes the files of a commit into an empty directory, and their index. Attributes count, but only filters that the user named run. */
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

/** The named filters, as the user's configuration defines them. A filter is the user's own program and gets the user's HOME. */
async function namedFilters(
  gitDir: string,
  filters: readonly string[],
): Promise<{ config: Record<string, string>; env: Record<string, string> }> {
  // Git LFS has its files in the repository. Nothing is fetched.
  const config: Record<string, string> = { ...FULL, "lfs.storage": join(gitDir, "lfs") };
  for (const name of filters) Object.assign(config, await readUserFilter(name));
  const { HOME = "" } = process.env;
  return { config, env: HOME === "" ? {} : { HOME } };
}
