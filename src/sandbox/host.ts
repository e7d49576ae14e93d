/** What the layers above need of the host: the same files, locks, owners and git that sandboxes are kept with. */
export { writeFileAtomic } from "../machine/atomic-file.js";
export { privateSubdirectory } from "../machine/home.js";
export { withLock } from "../machine/lock.js";
export { currentOwner, isOwnerAlive, type Owner } from "../machine/owner.js";
export { assertBranchName } from "../util/branch-name.js";
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
} from "../util/checks.js";
export { checkedOutAt } from "./git/repository/checked-out.js";
export { trustedPath } from "./git/repository/find-git.js";
export { enclosingRepository } from "./git/repository/locate-repository.js";
export { findRepository, type Repository, resolveCommit } from "./git/repository/repository.js";
export { repositoryGit, runRepositoryGit } from "./git/repository/repository-git.js";
export { readRepositorySettings } from "./git/repository/repository-settings.js";
export { uncommittedFiles } from "./git/repository/uncommitted-files.js";
export { findSource, findStart } from "./git/source/source.js";
