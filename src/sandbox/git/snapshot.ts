import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { syncPath } from "../atomic-file.js";
import { toSandboxError } from "../errors.js";
import { failpoint } from "../failpoint.js";
import { privateSubdirectory } from "../home.js";
import { assertSandboxId } from "../sandbox-id.js";
import { writeGitDirectory } from "./git-directory.js";
import { gitError, type HostGitResult, hostGit, runHostGit } from "./host-git.js";
import type { InsideHead, JailedCommit } from "./jailed-commit.js";
import { importPack, type JailedPackOptions, withJailedPack } from "./jailed-pack.js";
import { withPrivateStore } from "./private-store.js";
import { inRepository } from "./repository.js";
import { withRepositoryLock } from "./repository-lock.js";
import { checkHistory, checkSnapshot } from "./snapshot-policy.js";

/** A snapshot that is safely stored. */
export interface Snapshot {
  /** What holds it: `refs/glovebox/<sandbox>/<n>`. */
  readonly ref: string;
  readonly commit: string;
  /** The last commit that was made inside, when those are in its history. */
  readonly head?: InsideHead;
  /** The git directory that it is in. */
  readonly gitDir: string;
  /** What is not in it, or leads out of it. */
  readonly warnings: readonly string[];
}

/**
 * Saves the files of a sandbox as a commit: in the source, or in a repository below the home when there is none.
 *
 * The host believes nothing of what the jail answers: git checks every object on the way in, we check the history.
 * Commits made inside that do not stand up to that are left out, and told.
 */
export async function createSnapshot(opts: JailedPackOptions): Promise<Snapshot> {
  assertSandboxId(opts.sandboxId);
  if (opts.inside === undefined) return await attempt(opts);
  try {
    return await attempt(opts);
  } catch (error) {
    const { code, message } = toSandboxError(error);
    if (!["tampered", "internal", "limit_exceeded"].includes(code)) throw error;
    const snapshot = await attempt({ ...opts, inside: undefined, isBegun: false });
    return { ...snapshot, warnings: [withoutCommits(message), ...snapshot.warnings] };
  }
}

async function attempt(opts: JailedPackOptions): Promise<Snapshot> {
  const { sandboxId, source } = opts;
  return await withJailedPack(opts, async (made, pack) => {
    const { commit, head } = made;
    const parent = head?.sha ?? opts.parent ?? source?.baseSha;
    const check = async (gitDir: string): Promise<string[]> => {
      await importPack(gitDir, pack);
      const [, warnings] = await Promise.all([
        head && source && head.sha !== source.baseSha ? checkHistory(gitDir, head.sha, source.baseSha) : undefined,
        checkSnapshot(gitDir, commit, { parent, base: source?.baseSha }),
      ]);
      return [...told(made, opts.fate ?? "not in the commit"), ...warnings];
    };
    const gitDir = source?.repository.gitDir ?? ownRepository(sandboxId);
    // Somewhere else first: git keeps the objects of a pack that it refuses half-way, and nobody would take them away.
    const warnings = await withPrivateStore(`${opts.store}.check`, source?.repository, (store) => check(store.gitDir));
    await failpoint("snapshot.committed");
    return await withRepositoryLock(gitDir, async () => {
      if (source === undefined) await prepareOwnRepository(gitDir);
      await importPack(gitDir, pack, opts.isDurable);
      await failpoint("snapshot.imported");
      const ref = await createRef(gitDir, opts, commit);
      if (opts.isDurable === true) await syncNames(gitDir, ref);
      return { ref, commit, ...(head && { head }), gitDir, warnings };
    });
  });
}

/** Where the snapshots of a sandbox without a source are. */
export function ownRepository(sandboxId: string): string {
  return join(privateSubdirectory("snapshots"), `${sandboxId}.git`);
}

/** What a user should know about a commit of a jail; `fate` says what becomes of repositories in it. */
export function told({ nested, complaint }: JailedCommit, fate: string): string[] {
  const apart = nested.map((path) => `${JSON.stringify(path)} is a repository of its own and is ${fate}`);
  return complaint === undefined ? apart : [withoutCommits(complaint), ...apart];
}

function withoutCommits(why: string): string {
  return `The commits made inside are left out: ${why}`;
}

/** The number that the last snapshot of each running sandbox got. */
const numbered = new WeakMap<object, number>();

/** A free number gets the commit. */
async function createRef(gitDir: string, opts: JailedPackOptions, commit: string): Promise<string> {
  const { sandboxId, sandbox = opts } = opts;
  const prefix = `refs/glovebox/${sandboxId}/`;
  const last = numbered.get(sandbox);
  const next = last === undefined ? undefined : `${prefix}${last + 1}`;
  const isFree = next !== undefined && (await writeRef(gitDir, next, commit)).exitCode === 0;
  const ref = isFree ? next : `${prefix}${(await lastNumber(gitDir, prefix)) + 1}`;
  if (!isFree) {
    const result = await writeRef(gitDir, ref, commit);
    if (result.exitCode !== 0) throw gitError(["update-ref"], result);
  }
  numbered.set(sandbox, Number(ref.slice(prefix.length)));
  await failpoint("snapshot.referenced");
  return ref;
}

/** Makes the name of a ref outlive a power loss, and with it, where the file system has a journal, what was named before. */
async function syncNames(gitDir: string, ref: string): Promise<void> {
  for (let path = dirname(join(gitDir, ref)); path !== gitDir; path = dirname(path)) {
    // A repository with another way of storing refs has no such directory, and sees to it by itself.
    if (existsSync(path)) await syncPath(path);
  }
}

/** Makes a ref that is not there yet. */
async function writeRef(gitDir: string, ref: string, commit: string): Promise<HostGitResult> {
  return await runHostGit(["update-ref", "--no-deref", ref, commit, ""], inRepository(gitDir));
}

async function lastNumber(gitDir: string, prefix: string): Promise<number> {
  const taken = await hostGit(["for-each-ref", "--format=%(refname)", prefix], inRepository(gitDir));
  return Math.max(0, ...taken.split("\n").map((name) => Number(name.slice(prefix.length)) || 0));
}

async function prepareOwnRepository(gitDir: string): Promise<void> {
  const config = { core: { bare: "true" }, gc: { auto: "0" } };
  await writeGitDirectory(gitDir, { head: "refs/heads/none", config });
  for (const path of ["HEAD", "config", ".", ".."].map((name) => join(gitDir, name))) await syncPath(path);
}
