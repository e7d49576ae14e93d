import { lstat, mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import type { Resource } from "../../../../contracts/backend.js";
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
 * A source, checked, whose files will go into a sandbox that the host can't look into.
 *
 * A backend makes it by `planMirror`, names its `resources` in the record that it creates, calls `fillMirror` once its driver works, and
 * uses the operations of `createOperations(mirroredTree(base, driver, signal), …)` in its driver. Abort `signal` when the
 * sandbox is closed, then wait for `settled()`. A kept sandbox keeps `base`, calls `sweepScratch` when it is opened again, and then
 * only needs `mirroredTree`. Its `removeResource` starts with `removeGitResource`; its `removeSnapshot` is the one of this room.
 */
export interface MirrorPlan {
  /** What the files start from. Plain data: keep it in the record, to open the sandbox again. */
  readonly base: TreeBase;
  /** What the record must name before `fillMirror`. `removeGitResource` removes them. */
  readonly resources: readonly Resource[];
}

/** Checks `repo` and `branch`. Makes nothing. With `startAt` the files start from this commit, not from that of the branch. */
export async function planMirror(
  id: string,
  opts: Pick<SandboxOptions, "branch" | "githubToken" | "signal" | "gitFilters" | "gitAlternates"> & { repo: string },
  startAt?: string,
): Promise<MirrorPlan> {
  const repository = await findSource(opts.repo, opts);
  const sha = startAt ?? (await findStart(repository, opts.branch));
  const base = { repository, sha, branch: opts.branch ?? `glovebox/${id}` };
  return { base, resources: mirrorResources(base) };
}

/** What the n-th fork of a sandbox starts from, if the backend copies the files itself. Call `nameForkedBranch` afterwards. */
export function forkMirror({ base }: Pick<MirrorPlan, "base">, n: number): MirrorPlan {
  const forked = { ...base, branch: `${base.branch}-fork-${n}` };
  return { base: forked, resources: mirrorResources(forked) };
}

/** The resources that a sandbox's record must name while its files come from this base. */
export function mirrorResources({ repository, sha }: TreeBase): Resource[] {
  return [...resourcesOfSource(repository), { kind: "base", path: baseDirOf(repository, sha) }];
}

/** Puts the files of the base and a standalone git into a new sandbox, whose record exists. Returns warnings for the user. */
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
    await failpoint("create.sandbox-git");
    const trees = [
      { hostDir: files.tree, except: ".git" },
      { hostDir: git, at: ".git" },
    ];
    await driver.importTree(packTrees(trees), driver.workDir);
    return isComplete ? [] : ["The history of the repository is too large for the sandbox: git has one commit there"];
  } finally {
    await removeOwnTree(git);
  }
}

/** The live tree of a sandbox that the host can't look into. Each look copies all files to where only jailed git reads them. */
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

/** Moves the git directory out of a copy. Anything else in its place is removed, and an empty directory stands for it. */
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
