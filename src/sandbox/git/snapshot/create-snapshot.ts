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

/** A stored snapshot. */
export interface Snapshot {
  /** The ref that holds it: `refs/glovebox/<sandbox>/<n>`. */
  readonly ref: string;
  readonly commit: string;
  /** What was checked out in the sandbox git, if the sandbox's commits are in its history. */
  readonly head?: SandboxHead;
  /** The git directory that it is in. */
  readonly gitDir: string;
  /** What is not in it, and links that lead out of it. */
  readonly warnings: readonly string[];
}

/**
 * Saves the files of a sandbox as a commit: in the source, or in a repository in the home when there is none.
 *
 * What the jail answers is untrusted: git checks every object on the way in, we check the history. If the sandbox's commits fail these checks,
 * they are left out, with a warning.
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
      // In a scratch repository first: git leaves the objects of a pack that it refuses half-way, and nobody would remove them.
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

/** The repository for the snapshots of a sandbox without a source. */
export function ownRepository(sandboxId: string): string {
  return join(privateSubdirectory("snapshots"), `${sandboxId}.git`);
}

/** The warnings about a jailed commit; `nestedNote` says what happens to nested repositories. */
export function warningsOf({ nested, complaint }: JailedCommit, nestedNote: string): string[] {
  const apart = nested.map((path) => `${JSON.stringify(path)} is a repository of its own and is ${nestedNote}`);
  return complaint === undefined ? apart : [withoutCommits(complaint), ...apart];
}

function withoutCommits(why: string): string {
  return `The commits of the sandbox are left out: ${why}`;
}

/** The number of the last snapshot of each running sandbox. */
const numbered = new WeakMap<object, number>();

/** Gives the commit the next free number. */
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
  throw new SandboxError("conflict", `Another process is writing ${join(gitDir, prefix)}`);
}

/** Makes the name of a ref survive a power loss and, on a file system with a journal, everything that was named before. */
async function syncNames(gitDir: string, ref: string): Promise<void> {
  const paths: string[] = [];
  for (let path = dirname(join(gitDir, ref)); path !== gitDir; path = dirname(path)) paths.push(path);
  // Where refs are no files these directories don't exist, and git does it.
  await Promise.all(paths.filter((path) => existsSync(path)).map(syncPath));
}

async function prepareOwnRepository(gitDir: string): Promise<void> {
  const config = { core: { bare: "true" }, gc: { auto: "0" } };
  await writeGitDirectory(gitDir, { head: "refs/heads/none", config });
  for (const path of ["HEAD", "config", ".", ".."].map((name) => join(gitDir, name))) await syncPath(path);
}
