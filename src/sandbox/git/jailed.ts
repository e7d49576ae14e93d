export { copyIndex, fillStore, makeStore, takePackOut } from "./jailed/jail-store.js";
export { type CommitPlan, commitInJail, type JailedCommit, snapshotMessage } from "./jailed/jailed-commit.js";
export { createJailedGit, type RunJailedGit } from "./jailed/jailed-git.js";
export { closeSpareJail, startSpareJail, takeJail } from "./jailed/spare-jail.js";
