/** What saves, compares and pushes the files of a sandbox: loaded by `operations.ts` when it is needed for the first time. */
export { closeSpareJail } from "./jailed.js";
export { findDefaultBranch, pushBranch } from "./push.js";
export {
  fillForks,
  listChanges,
  nameForkedBranch,
  removeSnapshot,
  removeUnfinishedSnapshots,
  restoreSnapshot,
  saveSnapshot,
} from "./snapshot.js";
