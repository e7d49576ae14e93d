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

/** More than a tick of any clock; where files are dated by whole seconds, those of the last one are looked into anyway. */
const MOST_TICKS = 30;

/** What `writeBorrowingGit` needs. */
export interface BorrowingGit {
  repository: Repository;
  /** Absent: none is current yet. */
  branch?: string;
  /** The commit that the files are of. */
  baseSha: string;
  /** An absent or empty directory that is not visible inside. */
  dir: string;
  /** What was read of the repository already. */
  source?: Promise<InheritedGit> | undefined;
}

/** What a private git directory takes over from the user's repository. */
export interface InheritedGit {
  readonly config: GitConfig;
  /** In the form of a `packed-refs` file. */
  readonly refs: string;
}

/** Reads what a private git directory takes over, which may be done before its files are there. */
export async function readInheritedGit(repository: Repository): Promise<InheritedGit> {
  const [config, refs] = await Promise.all([sandboxGitConfig(repository), listRefs(repository)]);
  return { config, refs };
}

/**
 * Makes a git directory for the inside of a sandbox, so that nothing of the user's repository has to be writable there,
 * and its configuration, which may hold tokens, is not even readable.
 *
 * Once a sandbox has run, the directory is hostile: no git of the host's may ever look at it.
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

/**
 * Gives a private git directory the index that belongs to the files, and returns once whatever is changed from now on has another time than what
 * the index knows: where it is the time alone that tells, a change within the same tick of the clock would be none.
 */
export async function giveIndex(dir: string, index: string): Promise<void> {
  const copy = join(borrowingGitDir(dir), "index");
  await copyIfThere(index, copy);
  const { mtimeNs: written } = await stat(index, { bigint: true });
  for (let tick = 0; tick < MOST_TICKS && (await stat(copy, { bigint: true })).ctimeNs <= written; tick++) {
    await delay(1);
    await chmod(copy, 0o600);
  }
}

/** The settings of a git directory for the inside. */
export async function sandboxGitConfig(repository: Repository): Promise<GitConfig> {
  return {
    core: {
      bare: "false",
      logallrefupdates: "true",
      // The inside sees other owners and inodes than the host, where the index was made: it must not hash all files again.
      checkstat: "minimal",
      ...(await readCheckoutSettings(repository)),
    },
    ...(await filterSections(repository.filters)),
    user: { name: "Glovebox", email: "glovebox@localhost" },
    gc: { auto: "0" },
    maintenance: { auto: "false" },
  };
}

/** Makes a branch the current one of a git directory, at a commit. */
export function writeBranch(git: string, branch: string, sha: string): void {
  const ref = join(git, "refs", "heads", branch);
  mkdirSync(dirname(ref), { recursive: true, mode: 0o700 });
  writeFileSync(ref, `${sha}\n`, { mode: 0o600 });
  writeFileSync(join(git, "HEAD"), `ref: refs/heads/${branch}\n`, { mode: 0o600 });
}

/** The git directory itself, below the one that `writeBorrowingGit` was given. */
export function borrowingGitDir(dir: string): string {
  return join(dir, "git");
}

function gitFile(dir: string): string {
  return join(dir, "gitfile");
}

/** What has to be bound where for the inside to find a private git directory, except for that directory itself. */
export function borrowingGitBinds(repository: Repository, dir: string, workDir: string): JailBind[] {
  return [...objectBinds(repository), { source: gitFile(dir), target: join(workDir, ".git"), owned: true }];
}

/** The branches and tags of the source, in the form of a `packed-refs` file. */
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
