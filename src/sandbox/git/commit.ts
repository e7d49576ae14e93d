export { commitOptionsOf } from "./commit/commit-options.js";
export { importPack } from "./commit/import-pack.js";
export { type TreeCommitOptions, withTreeCommit } from "./commit/tree-commit.js";
