export { branchMark } from "./worktree/branch-mark.js";
export { removeBranch, removeWorktree } from "./worktree/remove-worktree.js";
export { startWorktree } from "./worktree/worktree.js";
