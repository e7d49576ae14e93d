import { mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { copyIfThere, type Repository, repositoryGit, writeGitDirectory } from "../repository.js";
import { listRefs, sandboxGitConfig, writeBranch } from "./borrowing-git.js";

/** What `writeStandaloneGit` needs. */
export interface StandaloneGit {
  repository: Repository;
  branch: string;
  /** The commit of the branch. */
  sha: string;
  /** An index of the files, if the sandbox sees them with the same times. Absent: git in the sandbox makes one. */
  index?: string | undefined;
  /** Must not exist. */
  dir: string;
  /** Bytes of objects beyond which the history is left out. Default 256 MiB. */
  maxHistory?: number | undefined;
  signal?: AbortSignal | undefined;
}

const MAX_HISTORY = 256 * 1024 ** 2;

/**
 * Makes a standalone git, for a sandbox that sees nothing of the host: with all branches, tags and their history or, if that is too large,
 * with one commit, like a shallow clone. Returns whether the history is in it.
 */
export async function writeStandaloneGit(opts: StandaloneGit): Promise<{ isComplete: boolean }> {
  const { repository, branch, sha, index, dir, signal } = opts;
  const config = await sandboxGitConfig(repository);
  // The files are written again in the sandbox, with change times that the index doesn't know.
  const core = { ...config["core"], trustctime: "false" };
  await writeGitDirectory(dir, { head: `refs/heads/${branch}`, config: { ...config, core }, repository });
  const isComplete = (await historySize(repository)) <= (opts.maxHistory ?? MAX_HISTORY);
  const refs = isComplete ? await listRefs(repository) : "";
  if (isComplete) await writeFile(join(dir, "packed-refs"), refs, { mode: 0o600 });
  else await writeFile(join(dir, "shallow"), `${sha}\n`, { mode: 0o600 });
  const tips = [...refs.matchAll(/^([0-9a-f]+) /gm)].map(([, tip = ""]) => tip);
  const wanted = isComplete ? [...new Set([sha, ...tips])] : [`--shallow ${sha}`, sha];
  await writePack(repository, wanted, join(dir, "objects", "pack"), { isShallow: !isComplete, signal });
  writeBranch(dir, branch, sha);
  if (index !== undefined) await copyIfThere(index, join(dir, "index"));
  return { isComplete };
}

/** Packs what the given commits reach, without what commits after a `^` reach, into a directory. */
export async function writePack(
  repository: Repository,
  wanted: readonly string[],
  dir: string,
  opts: { isShallow?: boolean; signal?: AbortSignal | undefined } = {},
): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const list = join(dir, "wanted");
  try {
    await writeFile(list, `${wanted.join("\n")}\n`, { mode: 0o600 });
    const args = ["pack-objects", "--revs", ...(opts.isShallow ? ["--shallow"] : []), "--delta-base-offset", "--quiet"];
    const { signal } = opts;
    const how = { input: list, signal, interruptible: true };
    await repositoryGit([...args, join(dir, "pack")], repository.gitDir, how);
  } finally {
    await rm(list, { force: true });
  }
}

/** The approximate size of a repository's objects, with those that it borrows. */
async function historySize({ gitDir, objects, alternates = [] }: Repository): Promise<number> {
  const counted = await repositoryGit(["count-objects", "-v"], gitDir);
  let bytes = 1024 * Number(/^size: (\d+)$/m.exec(counted)?.[1] ?? 0);
  for (const store of [objects, ...alternates.map((alternate) => alternate.store)]) {
    for (const name of await readdir(join(store, "pack")).catch(() => [])) {
      if (name.endsWith(".pack")) bytes += (await stat(join(store, "pack", name)).catch(() => ({ size: 0 }))).size;
    }
  }
  return bytes;
}
