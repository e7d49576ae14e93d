export {
  borrowingGitBinds,
  borrowingGitDir,
  giveIndex,
  type InheritedGit,
  readInheritedGit,
  writeBorrowingGit,
  writeBranch,
} from "./sandbox-git/borrowing-git.js";
export { writePack, writeStandaloneGit } from "./sandbox-git/standalone-git.js";
