import { lstat, mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import type { Resource } from "../../../ledger.js";
import { failpoint } from "../../../machine/failpoint.js";
import { removeOwnTree, removeTree } from "../../../machine/remove-tree.js";
import { packDirectory, packTrees } from "../../../util/tar/tar-pack.js";
import { unpackTar } from "../../../util/tar/tar-unpack.js";
import { MAX_IMPORT_BYTES, type SandboxOptions } from "../../types.js";
import { INSIDE_GIT } from "../repository.js";
import { writeStandaloneGit } from "../sandbox-git.js";
import { baseDirOf, findSource, findStart, openBase, resourcesOfSource, type TreeBase } from "../source.js";
import { type LiveTree, scratchPath, type TreeLook } from "./live-tree.js";
import { type MirroredDriver, mirrorGit } from "./mirror-git.js";

/**
 * A repository whose files are to go into a sandbox that the host cannot look into: everything that can be refused has been.
 *
 * A backend makes it by `planMirror`, names its `resources` in the record that it creates, calls `fillMirror` once its driver works, and
 * takes what it wants of `createOperations(mirroredTree(base, driver, signal), …)` into its driver. `signal` is aborted when the
 * sandbox is taken down, before `settled()` is awaited. A kept sandbox keeps `base`, calls `sweepScratch` when it is opened again, and then
 * only needs `mirroredTree`. Its `removeResource` begins with `removeGitResource`; its `removeSnapshot` is the one of this room.
 */
export interface MirrorPlan {
  /** What the files start from. Nothing but data: keep it in the record, for the sandbox to be opened again. */
  readonly base: TreeBase;
  /** What the record has to name before `fillMirror`. Taken away by `removeGitResource`. */
  readonly resources: readonly Resource[];
}

/** Checks `repo` and `branch`, without making anything. */
export async function planMirror(
  id: string,
  opts: Pick<SandboxOptions, "branch" | "githubToken" | "signal" | "gitFilters" | "gitAlternates"> & { repo: string },
): Promise<MirrorPlan> {
  const repository = await findSource(opts.repo, opts);
  const sha = await findStart(repository, opts.branch);
  const base = { repository, sha, branch: opts.branch ?? `glovebox/${id}` };
  return { base, resources: mirrorResources(base) };
}

/** What the n-th copy of a sandbox starts from, when the backend copies the files by itself. Then `nameForkedBranch` is due. */
export function forkMirror({ base }: Pick<MirrorPlan, "base">, n: number): MirrorPlan {
  const forked = { ...base, branch: `${base.branch}-fork-${n}` };
  return { base: forked, resources: mirrorResources(forked) };
}

/** What the record of a sandbox has to name for as long as its files come from this base. */
export function mirrorResources({ repository, sha }: TreeBase): Resource[] {
  return [...resourcesOfSource(repository), { kind: "base", path: baseDirOf(repository, sha) }];
}

/**
 * Puts the files of the base into a new sandbox, and beside them a git directory that needs nothing of the host's. To be
 * called once, after the record of the sandbox was made. Gives what the user should know.
 */
export async function fillMirror(
  { base }: Pick<MirrorPlan, "base">,
  driver: Pick<MirroredDriver, "id" | "workDir" | "importTree">,
  signal?: AbortSignal,
): Promise<string[]> {
  const { repository, branch, sha } = base;
  const files = await openBase(repository, sha, driver.id);
  const git = scratchPath(driver.id, "git");
  try {
    const { isComplete } = await writeStandaloneGit({ repository, branch, sha, index: files.index, dir: git, signal });
    await failpoint("create.private-git");
    const trees = [
      { hostDir: files.tree, except: ".git" },
      { hostDir: git, at: ".git" },
    ];
    await driver.importTree(packTrees(trees), driver.workDir);
    return isComplete
      ? []
      : ["The history of the repository is too large to be carried inside: git has one commit there"];
  } finally {
    await removeOwnTree(git);
  }
}

/**
 * A sandbox that the host cannot look into, as what looks at its files sees it: each look takes all of them out, into a
 * directory that only this user can enter and that no git runs on outside a jail.
 */
export function mirroredTree(base: TreeBase, driver: MirroredDriver, signal: AbortSignal): LiveTree {
  const { id, backend } = driver;
  return {
    id,
    backend,
    base,
    source: `repository:${base.repository.gitDir}`,
    ownsGit: false,
    sandboxGit: mirrorGit(base, driver),
    driver,
    look: () => takeLook(driver, signal),
    warn: (message) => driver.onWarning?.(message),
    signal,
  };
}

function takeLook(driver: MirroredDriver, signal: AbortSignal): TreeLook {
  const place = scratchPath(driver.id, "mirror");
  const tree = join(place, "tree");
  const git = join(place, "git");
  const still = <T>(work: () => Promise<T>): Promise<T> => (driver.frozen ? driver.frozen(work) : work());
  return {
    root: { source: tree },
    sandboxGit: { source: git, target: INSIDE_GIT },
    tar: () => packDirectory(tree),
    async frozen(work) {
      try {
        await mkdir(place, { mode: 0o700 });
        const limits = { links: "kept", maxBytes: MAX_IMPORT_BYTES } as const;
        await still(() => unpackTar(whileOpen(driver.exportTree(driver.workDir), signal), tree, limits));
        await setApart(join(tree, ".git"), git);
        return await work();
      } finally {
        await removeOwnTree(place);
      }
    },
  };
}

/** Moves a git directory out of a tree. What is none, whatever it leads to, is taken away, and an empty one stands for it. */
async function setApart(from: string, to: string): Promise<void> {
  const found = await lstat(from).catch(() => undefined);
  if (found?.isDirectory()) {
    await rename(from, to);
    return;
  }
  if (found !== undefined) await removeTree(from);
  await mkdir(to, { mode: 0o700 });
}

async function* whileOpen(source: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    signal.throwIfAborted();
    yield chunk;
  }
}
