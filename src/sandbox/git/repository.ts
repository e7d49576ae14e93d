export { checkedOutAt, worktreeNames } from "./repository/checked-out.js";
export { copyIfThere, type GitConfig, makeScratchDirectory, writeGitDirectory } from "./repository/git-directory.js";
export { INSIDE_GIT, INSIDE_OBJECTS } from "./repository/inside-paths.js";
export { enclosingRepository, repositoryExists } from "./repository/locate-repository.js";
export { objectBinds } from "./repository/object-store.js";
export { mayHaveRef, readHeadFile, readRefFile } from "./repository/ref-file.js";
export {
  findRepository,
  type Repository,
  type RepositoryTrust,
  recheckRepository,
  resolveCommit,
} from "./repository/repository.js";
export { repositoryGit, runRepositoryGit } from "./repository/repository-git.js";
export { checkWayTo } from "./repository/repository-layout.js";
export { sweepRepositoryLocks, withRepositoryLock } from "./repository/repository-lock.js";
export {
  filterSections,
  readCheckoutSettings,
  readRepositorySettings,
  readUserFilter,
} from "./repository/repository-settings.js";
export { withScratchRepository } from "./repository/scratch-repository.js";
export { removeStaleRefLock, removeStaleRefLocks } from "./repository/stale-ref-lock.js";
export { uncommittedFiles } from "./repository/uncommitted-files.js";
export { readUntrustedFile, readUntrustedText } from "./repository/untrusted-file.js";
