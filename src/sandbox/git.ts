export { explainGitFailure, findGit, trustedPath } from "./git/host.js";
export {
  fillMirror,
  forkMirror,
  type LiveTree,
  type MirroredDriver,
  type MirrorPlan,
  mirroredTree,
  mirrorResources,
  planMirror,
  type RunGuest,
  readSandboxHead,
  runInside,
  type SandboxGit,
  scratchPath,
  setSandboxBranch,
  sweepScratch,
} from "./git/live-tree.js";
export {
  createOperations,
  fillForks,
  nameForkedBranch,
  removeSnapshot,
  type TreeOperations,
} from "./git/operations.js";
export { assertServer, shownUrl } from "./git/remote.js";
export { removeGitResource, textOf } from "./git/remove-git-resource.js";
export {
  checkedOutAt,
  enclosingRepository,
  findRepository,
  INSIDE_GIT,
  type Repository,
  readRepositorySettings,
  recheckRepository,
  repositoryGit,
  resolveCommit,
  runRepositoryGit,
  sweepRepositoryLocks,
  uncommittedFiles,
} from "./git/repository.js";
export {
  borrowingGitBinds,
  borrowingGitDir,
  giveIndex,
  type InheritedGit,
  readInheritedGit,
  writeBorrowingGit,
  writeBranch,
} from "./git/sandbox-git.js";
export {
  baseOfSnapshot,
  parseChanges,
  RAW_AND_PATCH,
  replaceFiles,
  writeArchive,
} from "./git/snapshot.js";
export {
  baseDirOf,
  findSource,
  findStart,
  listBases,
  listClones,
  openBase,
  parseSourceUrl,
  resourcesOfSource,
  startCheckOut,
  type TreeBase,
} from "./git/source.js";
export { startWorktree } from "./git/worktree.js";
