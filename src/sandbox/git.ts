export type { RunGuest } from "./git/fast-commit.js";
export { explainGitFailure } from "./git/host/explain-failure.js";
export { findGit, trustedPath } from "./git/host/find-git.js";
export { type SandboxGit, type LiveTree, scratchPath, sweepScratch } from "./git/live-tree/live-tree.js";
export { fillMirror, forkMirror, mirroredTree, mirrorResources, planMirror } from "./git/live-tree/mirror.js";
export type { MirroredDriver } from "./git/live-tree/mirror-git.js";
export { runInside } from "./git/live-tree/run-inside.js";
export { setSandboxBranch } from "./git/live-tree/sandbox-head.js";
export { createOperations, type TreeOperations } from "./git/operations.js";
export { assertServer, shownUrl } from "./git/remote/remote-url.js";
export { removeGitResource, textOf } from "./git/remove-git-resource.js";
export { checkedOutAt } from "./git/repository/checked-out.js";
export { enclosingRepository } from "./git/repository/locate-repository.js";
export { findRepository, type Repository, recheckRepository, resolveCommit } from "./git/repository/repository.js";
export { repositoryGit, runRepositoryGit } from "./git/repository/repository-git.js";
export { sweepRepositoryLocks } from "./git/repository/repository-lock.js";
export { readRepositorySettings } from "./git/repository/repository-settings.js";
export { uncommittedFiles } from "./git/repository/uncommitted-files.js";
export {
  type InheritedGit,
  giveIndex,
  INSIDE_GIT,
  borrowingGitBinds,
  borrowingGitDir,
  readInheritedGit,
  writeBranch,
  writeBorrowingGit,
} from "./git/sandbox-git/borrowing-git.js";
export { writeArchive } from "./git/snapshot/archive.js";
export { fillForks, nameForkedBranch } from "./git/snapshot/fork-files.js";
export { parseChanges, RAW_AND_PATCH } from "./git/snapshot/raw-diff.js";
export { removeSnapshot } from "./git/snapshot/remove-snapshot.js";
export { replaceFiles } from "./git/snapshot/replace-files.js";
export { readSandboxHead } from "./git/snapshot/replicate.js";
export { baseDirOf, listBases, openBase } from "./git/source/base-cache.js";
export { startCheckOut } from "./git/source/checkout.js";
export { listClones } from "./git/source/clone-cache.js";
export { findSource, findStart, resourcesOfSource } from "./git/source/source.js";
export { parseSourceUrl } from "./git/source/source-url.js";
export type { TreeBase } from "./git/source/tree-base.js";
export { branchMark } from "./git/worktree/branch-mark.js";
export { startWorktree } from "./git/worktree/worktree.js";
