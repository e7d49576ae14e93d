export { baseDirOf, listBases, openBase, removeUnfinishedBase } from "./source/base-cache.js";
export { startCheckOut, writeFiles } from "./source/checkout.js";
export { listClones } from "./source/clone-cache.js";
export { findSource, findStart, resourcesOfSource } from "./source/source.js";
export { parseSourceUrl } from "./source/source-url.js";
export { type TreeBase, treeOf } from "./source/tree-base.js";
