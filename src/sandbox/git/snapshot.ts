export { writeArchive } from "./snapshot/archive.js";
export { createSnapshot } from "./snapshot/create-snapshot.js";
export { fillForks, nameForkedBranch } from "./snapshot/fork-files.js";
export { listChanges } from "./snapshot/list-changes.js";
export { parseChanges, RAW_AND_PATCH } from "./snapshot/raw-diff.js";
export { removeRef, removeSnapshot, removeUnfinishedSnapshots } from "./snapshot/remove-snapshot.js";
export { replaceFiles } from "./snapshot/replace-files.js";
export { holdCommit, restoreSnapshot } from "./snapshot/restore-snapshot.js";
export { baseOfSnapshot, recordSnapshots, saveSnapshot } from "./snapshot/save-snapshot.js";
