import { join } from "node:path";
import { INSIDE_GIT, type LiveTree, readSandboxHead, type SandboxGit, type TreeBase } from "../../git.js";
import type { JailBind } from "../../jail.js";
import type { LocalDriver } from "./driver.js";
import { rebuildSandboxGit } from "./rebuild-git.js";
import type { Workspace } from "./workspace.js";

/** A running local sandbox, as the code that reads its files sees it: they are in a directory of the host. */
export function localTree(
  id: string,
  workspace: Workspace,
  isConfined: boolean,
  driver: LocalDriver,
  signal: AbortSignal,
): LiveTree {
  const { root, trees, base } = workspace;
  // Without isolation, commands commit in the user's repository itself.
  const git = isConfined ? trees.find(({ target }) => target === INSIDE_GIT) : undefined;
  return {
    id,
    backend: driver.backend,
    base,
    // A directory of the user's is not copied to the same path, and without isolation there is only that of the host.
    ...(isConfined && workspace.kind !== "base-dir" && { place: workspace.workDir }),
    source: sourceOf(workspace),
    ownsGit: ownsGit(workspace),
    ...(git && base && { sandboxGit: sandboxGit(id, git, base, driver) }),
    driver,
    isLasting: true,
    look: () => ({
      root,
      sandboxGit: git,
      tar: () => driver.exportTree(driver.workDir),
      ...(isConfined && { runGuest: (args, stdin, most) => driver.runGuest(args, stdin, most) }),
      frozen: (work) => driver.frozen(work),
    }),
    warn: (message) => driver.onWarning?.(message),
    signal,
  };
}

function sandboxGit(id: string, { source, overlay }: JailBind, base: TreeBase, driver: LocalDriver): SandboxGit {
  return {
    rebuild: () => rebuildSandboxGit(id, base, driver),
    ...(overlay === undefined && { headCommit: () => readSandboxHead(source) }),
  };
}

/** Where a snapshot of a sandbox can be restored: the same repository, the same user directory, or any empty one. */
function sourceOf({ kind, workDir, base }: Workspace): string {
  if (base !== undefined) return `repository:${base.repository.gitDir}`;
  return kind === "base-dir" ? `directory:${workDir}` : "empty";
}

function ownsGit({ kind, workDir, trees }: Workspace): boolean {
  return (kind === "base-dir" || kind === "empty") && !trees.some(({ target }) => target === join(workDir, ".git"));
}
