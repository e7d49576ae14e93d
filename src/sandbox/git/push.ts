export { findDefaultBranch } from "./push/default-branch.js";
export { pushBranch } from "./push/push-branch.js";
