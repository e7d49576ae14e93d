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
export { privateSubdirectory } from "./home.js";
export {
  complaintOf,
  type HostGitOptions,
  type HostGitResult,
  hostGit,
  type PushTarget,
  parsePushUrl,
  runHostGit,
  runRemoteGit,
  withAskpass,
} from "./local.js";
export { withLock } from "./lock.js";
export { currentOwner, isOwnerAlive, type Owner } from "./owner.js";
export { removeTree } from "./remove-tree.js";
