/** What the layers above need of the host: the same files, locks, owners and git that sandboxes are kept with. */
export { writeFileAtomic } from "./atomic-file.js";
export { assertBranchName } from "./branch-name.js";
export {
  type Check,
  checkBoolean,
  checkEnv,
  checkOptions,
  checkSignal,
  checkText,
  invalidArgument,
  oneOf,
  type Shape,
} from "./checks.js";
export { checkedOutAt } from "./git/checked-out.js";
export { trustedPath } from "./git/find-git.js";
export { enclosingRepository } from "./git/locate-repository.js";
export { findRepository, type Repository, resolveCommit } from "./git/repository.js";
export { repositoryGit, runRepositoryGit } from "./git/repository-git.js";
export { readRepositorySettings } from "./git/repository-settings.js";
export { findSource, findStart } from "./git/source.js";
export { uncommittedFiles } from "./git/uncommitted-files.js";
export { privateSubdirectory } from "./home.js";
export { withLock } from "./lock.js";
export { currentOwner, isOwnerAlive, type Owner } from "./owner.js";
