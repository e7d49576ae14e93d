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
export { trustedPath } from "./git/find-git.js";
export { hostGit, runHostGit } from "./git/host-git.js";
export { findSource, findStart } from "./git/source.js";
export { checkedOutAt } from "./git/worktree.js";
export { privateSubdirectory } from "./home.js";
export { withLock } from "./lock.js";
export { currentOwner, isOwnerAlive, type Owner } from "./owner.js";
