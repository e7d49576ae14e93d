import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { SandboxError, toSandboxError } from "../../../../contracts/errors.js";
import { syncPath } from "../../../machine/atomic-file.js";
import { failpoint } from "../../../machine/failpoint.js";
import { privateSubdirectory } from "../../../machine/home.js";
import { assertSandboxId } from "../../../machine/sandbox-id.js";
import { importPack, type TreeCommitOptions, withTreeCommit } from "../commit.js";
import { createRef, type FastCommit, lastNumber, writeLooseObjects } from "../fast-commit.js";
import { gitIn, type RunGit } from "../host.js";
import type { JailedCommit } from "../jailed.js";
import type { SandboxHead } from "../live-tree.js";
import { runRepositoryGit, withRepositoryLock, withScratchRepository, writeGitDirectory } from "../repository.js";
import { checkHistory, checkSnapshot, warnOfLink } from "./snapshot-policy.js";

/** A snapshot that is safely stored. */
export interface Snapshot {
  /** What holds it: `refs/glovebox/<sandbox>/<n>`. */
  readonly ref: string;
  readonly commit: string;
  /** The last commit that was made inside, when those are in its history. */
  readonly head?: SandboxHead;
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
export async function createSnapshot(opts: TreeCommitOptions): Promise<Snapshot> {
  assertSandboxId(opts.sandboxId);
  if (opts.sandboxGit === undefined) return await attempt(opts);
  try {
    return await attempt(opts);
  } catch (error) {
    const { code, message } = toSandboxError(error);
    if (!["tampered", "internal", "limit_exceeded"].includes(code)) throw error;
    const snapshot = await attempt({ ...opts, sandboxGit: undefined, makeFast: undefined, isStarted: false });
    return { ...snapshot, warnings: [withoutCommits(message), ...snapshot.warnings] };
  }
}

async function attempt(opts: TreeCommitOptions): Promise<Snapshot> {
  const { sandboxId, source } = opts;
  const gitDir = source?.repository.gitDir ?? ownRepository(sandboxId);
  const name = async (
    commit: string,
    head: SandboxHead | undefined,
    warnings: readonly string[],
  ): Promise<Snapshot> => {
    await failpoint("snapshot.imported");
    const ref = await createNumberedRef(gitDir, opts, commit);
    if (opts.isDurable === true) await syncNames(gitDir, ref);
    return { ref, commit, ...(head && { head }), gitDir, warnings };
  };
  const useFast = async ({ commit, head, objects, links }: FastCommit): Promise<Snapshot> => {
    await failpoint("snapshot.committed");
    await writeLooseObjects(source?.repository.objects ?? join(gitDir, "objects"), objects, opts.isDurable);
    const warnings = links.flatMap(({ path, target }) => warnOfLink(path, target) ?? []);
    return await withRepositoryLock(gitDir, () => name(commit, head, warnings));
  };
  return await withTreeCommit(
    opts,
    async (made, pack) => {
      const { commit, head } = made;
      const parent = head?.sha ?? opts.parent ?? source?.baseSha;
      const check = async (git: RunGit): Promise<string[]> => {
        await importPack(git, pack);
        const [, warnings] = await Promise.all([
          head && source && head.sha !== source.baseSha ? checkHistory(git, head.sha, source.baseSha) : undefined,
          checkSnapshot(git, commit, { parent, base: source?.baseSha }),
        ]);
        return [...warningsOf(made, opts.nestedNote ?? "not in the commit"), ...warnings];
      };
      // Somewhere else first: git keeps the objects of a pack that it refuses half-way, and nobody would take them away.
      const warnings = await withScratchRepository(`${opts.store}.check`, source?.repository, (store) =>
        check(gitIn(store)),
      );
      await failpoint("snapshot.committed");
      return await withRepositoryLock(gitDir, async () => {
        if (source === undefined) await prepareOwnRepository(gitDir);
        await importPack((args, how) => runRepositoryGit(args, gitDir, how), pack, opts.isDurable);
        return await name(commit, head, warnings);
      });
    },
    useFast,
  );
}

/** Where the snapshots of a sandbox without a source are. */
export function ownRepository(sandboxId: string): string {
  return join(privateSubdirectory("snapshots"), `${sandboxId}.git`);
}

/** What a user should know about a commit of a jail; `nestedNote` says what becomes of repositories in it. */
export function warningsOf({ nested, complaint }: JailedCommit, nestedNote: string): string[] {
  const apart = nested.map((path) => `${JSON.stringify(path)} is a repository of its own and is ${nestedNote}`);
  return complaint === undefined ? apart : [withoutCommits(complaint), ...apart];
}

function withoutCommits(why: string): string {
  return `The commits made inside are left out: ${why}`;
}

/** The number that the last snapshot of each running sandbox got. */
const numbered = new WeakMap<object, number>();

/** A free number gets the commit. */
async function createNumberedRef(gitDir: string, opts: TreeCommitOptions, commit: string): Promise<string> {
  const { sandboxId, sandbox = opts } = opts;
  const prefix = `refs/glovebox/${sandboxId}/`;
  const last = numbered.get(sandbox) ?? (await lastNumber(gitDir, prefix));
  for (const before of [last, undefined]) {
    const number = (before ?? (await lastNumber(gitDir, prefix))) + 1;
    if (!(await createRef(gitDir, `${prefix}${number}`, commit))) continue;
    numbered.set(sandbox, number);
    await failpoint("snapshot.referenced");
    return `${prefix}${number}`;
  }
  throw new SandboxError("conflict", `${join(gitDir, prefix)} is being written by somebody else`);
}

/** Makes the name of a ref outlive a power loss, and with it, where the file system has a journal, what was named before. */
async function syncNames(gitDir: string, ref: string): Promise<void> {
  const paths: string[] = [];
  for (let path = dirname(join(gitDir, ref)); path !== gitDir; path = dirname(path)) paths.push(path);
  // A repository with another way of storing refs has no such directory, and sees to it by itself.
  await Promise.all(paths.filter((path) => existsSync(path)).map(syncPath));
}

async function prepareOwnRepository(gitDir: string): Promise<void> {
  const config = { core: { bare: "true" }, gc: { auto: "0" } };
  await writeGitDirectory(gitDir, { head: "refs/heads/none", config });
  for (const path of ["HEAD", "config", ".", ".."].map((name) => join(gitDir, name))) await syncPath(path);
}
