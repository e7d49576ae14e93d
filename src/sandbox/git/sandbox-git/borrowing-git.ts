import { mkdirSync, writeFileSync } from "node:fs";
import { chmod, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { JailBind } from "../../jail.js";
import {
  copyIfThere,
  filterSections,
  type GitConfig,
  INSIDE_GIT,
  INSIDE_OBJECTS,
  objectBinds,
  type Repository,
  readCheckoutSettings,
  repositoryGit,
  writeGitDirectory,
} from "../repository.js";

/** Milliseconds; longer than a tick of any clock. Where times are whole seconds, git looks into the files of the last one anyway. */
const MOST_TICKS = 30;

/** What `writeBorrowingGit` needs. */
export interface BorrowingGit {
  repository: Repository;
  /** The branch to check out. Absent: none yet. */
  branch?: string;
  /** The commit of the files. */
  baseSha: string;
  /** A missing or empty directory that no sandbox can see. */
  dir: string;
  /** Read beforehand, to save time. */
  source?: Promise<InheritedGit> | undefined;
}

/** What a borrowing git takes over from the source. */
export interface InheritedGit {
  readonly config: GitConfig;
  /** A `packed-refs` file. */
  readonly refs: string;
}

/** Reads what a borrowing git takes over; possible before the files are checked out. */
export async function readInheritedGit(repository: Repository): Promise<InheritedGit> {
  const [config, refs] = await Promise.all([sandboxGitConfig(repository), listRefs(repository)]);
  return { config, refs };
}

/**
 * Makes a borrowing git, so that a sandbox can't write into the source, and can't even read its configuration, which may hold tokens.
 *
 * Once the sandbox has run, the directory is hostile: git on the host must never look at it.
 */
export async function writeBorrowingGit(opts: BorrowingGit): Promise<void> {
  const { repository, branch, baseSha, dir } = opts;
  const git = borrowingGitDir(dir);
  const { config, refs } = await (opts.source ?? readInheritedGit(repository));
  await writeGitDirectory(git, { head: "refs/heads/main", config, repository });
  await writeFile(join(git, "objects", "info", "alternates"), `${INSIDE_OBJECTS}\n`);
  await writeFile(join(git, "packed-refs"), refs);
  if (branch === undefined) await writeFile(join(git, "HEAD"), `${baseSha}\n`, { mode: 0o600 });
  else writeBranch(git, branch, baseSha);
  await writeFile(gitFile(dir), `gitdir: ${INSIDE_GIT}\n`, { mode: 0o644 });
}

/** Gives a borrowing git the index of its files, and waits for the next tick of the clock: git could miss a change within the same tick. */
export async function giveIndex(dir: string, index: string): Promise<void> {
  const copy = join(borrowingGitDir(dir), "index");
  await copyIfThere(index, copy);
  const { mtimeNs: written } = await stat(index, { bigint: true });
  for (let tick = 0; tick < MOST_TICKS && (await stat(copy, { bigint: true })).ctimeNs <= written; tick++) {
    await delay(1);
    await chmod(copy, 0o600);
  }
}

/** The settings of a sandbox git. */
export async function sandboxGitConfig(repository: Repository): Promise<GitConfig> {
  return {
    core: {
      bare: "false",
      logallrefupdates: "true",
      // The sandbox sees other owners and inodes than the host, which made the index; git must not hash all files again.
      checkstat: "minimal",
      ...(await readCheckoutSettings(repository)),
    },
    ...(await filterSections(repository.filters)),
    user: { name: "Glovebox", email: "glovebox@localhost" },
    gc: { auto: "0" },
    maintenance: { auto: "false" },
  };
}

/** Checks out a branch at a commit, in a git directory that nobody uses yet. */
export function writeBranch(git: string, branch: string, sha: string): void {
  const ref = join(git, "refs", "heads", branch);
  mkdirSync(dirname(ref), { recursive: true, mode: 0o700 });
  writeFileSync(ref, `${sha}\n`, { mode: 0o600 });
  writeFileSync(join(git, "HEAD"), `ref: refs/heads/${branch}\n`, { mode: 0o600 });
}

/** The git directory below the one that `writeBorrowingGit` was given. */
export function borrowingGitDir(dir: string): string {
  return join(dir, "git");
}

function gitFile(dir: string): string {
  return join(dir, "gitfile");
}

/** The binds that a borrowing git needs in its sandbox, beside the git directory itself. */
export function borrowingGitBinds(repository: Repository, dir: string, workDir: string): JailBind[] {
  return [...objectBinds(repository), { source: gitFile(dir), target: join(workDir, ".git"), owned: true }];
}

/** The branches and tags of the source, as a `packed-refs` file. */
export async function listRefs(repository: Repository): Promise<string> {
  const format = "%(objectname)%00%(refname)%00%(*objectname)%00%(symref)";
  const query = ["for-each-ref", `--format=${format}`, "refs/heads", "refs/tags", "refs/remotes"];
  const answer = await repositoryGit(query, repository.gitDir, { maxOutput: 256 * 1024 * 1024 });
  const lines = ["# pack-refs with: peeled fully-peeled sorted"];
  for (const line of answer.split("\n")) {
    const [sha, name, peeled, target] = line.split("\0");
    if (sha === undefined || name === undefined || target !== "") continue;
    lines.push(`${sha} ${name}`);
    if (peeled) lines.push(`^${peeled}`);
  }
  return `${lines.join("\n")}\n`;
}
