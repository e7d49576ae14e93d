/** What the layers above need on the host: the files, locks, owners and git that sandboxes use, too. */
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
export {
  checkedOutAt,
  enclosingRepository,
  findRepository,
  findSource,
  findStart,
  type Repository,
  readRepositorySettings,
  repositoryGit,
  resolveCommit,
  runRepositoryGit,
  trustedPath,
  uncommittedFiles,
} from "./git.js";
