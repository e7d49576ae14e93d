import { SandboxError } from "../../../../contracts/errors.js";
import { addResource } from "../../../ledger.js";
import {
  createOperations,
  findSource,
  type MirroredDriver,
  mirroredTree,
  resolveCommit,
  resourcesOfSource,
  type TreeBase,
  type TreeOperations,
} from "../../git.js";
import type { Driver, SandboxOptions } from "../../types.js";

/** What the files of a sandbox started from. Plain data, saved with a kept sandbox. */
export type Origin =
  /** A repository on this machine, whose files were uploaded. */
  | { readonly base: TreeBase }
  /** One that the service cloned. */
  | { readonly url: string; readonly sha: string; readonly branch: string };

/** Identifies a repository. */
export function sourceOf(origin: Origin | undefined): string {
  if (origin === undefined) return "";
  return "base" in origin ? `repository:${origin.base.repository.gitDir}` : origin.url;
}

/** The repository as the option `repo` names it. */
export function repoOf(origin: Origin): string {
  if (!("base" in origin)) return origin.url;
  const { url, topLevel, gitDir } = origin.base.repository;
  return url ?? topLevel ?? gitDir;
}

/** What the n-th copy of a sandbox started from. */
export function forkOrigin(origin: Origin, n: number): Origin {
  return onBranch(origin, `${branchOf(origin)}-fork-${n}`);
}

/** The same start, for a sandbox with another branch. */
export function onBranch(origin: Origin, branch: string): Origin {
  return "base" in origin ? { base: { ...origin.base, branch } } : { ...origin, branch };
}

/** The branch of a sandbox, unless a command changed it. */
export function branchOf(origin: Origin): string {
  return "base" in origin ? origin.base.branch : origin.branch;
}

/**
 * The operations on a repository, from outside: each one copies the files out of the machine, and git works on them in a jail on this one. If the
 * service cloned the repository, a clone is made here when it is first needed.
 */
export function repositoryOperations(
  origin: Origin,
  driver: MirroredDriver,
  opts: Pick<SandboxOptions, "githubToken">,
): Required<Pick<Driver, "changes" | "git">> & { end(): Promise<void> } {
  const ending = new AbortController();
  let found: Promise<TreeOperations> | undefined;
  const find = async (): Promise<TreeOperations> => {
    const base = "base" in origin ? origin.base : await cloneHere(origin, driver.id, opts.githubToken, ending.signal);
    return createOperations(mirroredTree(base, driver, ending.signal), { token: opts.githubToken });
  };
  const operations = async (): Promise<Required<Pick<TreeOperations, "changes" | "git">>> => {
    found ??= find();
    // After a failure, the next call tries again.
    found.catch(() => {
      found = undefined;
    });
    return (await found) as Required<TreeOperations>;
  };
  return {
    changes: async () => await (await operations()).changes(),
    git: {
      pushBranch: async (branch, token, more) => await (await operations()).git.pushBranch(branch, token, more),
      defaultBranch: async () => await (await operations()).git.defaultBranch(),
    },
    end: async () => {
      ending.abort();
      await (await found?.catch(() => undefined))?.settled();
    },
  };
}

async function cloneHere(
  { url, sha, branch }: Extract<Origin, { url: string }>,
  id: string,
  githubToken: string | undefined,
  signal: AbortSignal,
): Promise<TreeBase> {
  const repository = await findSource(url, { ...(githubToken !== undefined && { githubToken }), signal });
  for (const resource of resourcesOfSource(repository)) await addResource(id, resource);
  if ((await resolveCommit(repository.gitDir, sha)) !== undefined) return { repository, sha, branch };
  throw new SandboxError("conflict", `The remote no longer has the commit ${sha} that the sandbox started from`, {
    retryable: false,
  });
}
