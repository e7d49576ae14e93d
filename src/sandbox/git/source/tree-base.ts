import { type Repository, repositoryGit } from "../repository.js";

/** The commit of the source that a sandbox's files started from. Plain data, for the ledger. */
export interface TreeBase {
  repository: Repository;
  sha: string;
  /** The sandbox's branch. It may exist in the source or not. */
  branch: string;
  /** An index of the commit's files that only the host writes. Absent: git reads every file. */
  index?: string;
  /** The git directory of a linked worktree, whose files are at the driver's `hostDir`. */
  worktree?: string;
}

const trees = new WeakMap<TreeBase, Promise<string>>();

/** The tree object of the commit, which never changes. */
export async function treeOf(base: TreeBase): Promise<string> {
  const query = ["rev-parse", "--verify", `${base.sha}^{tree}`];
  const asked = trees.get(base) ?? repositoryGit(query, base.repository.gitDir).then((id) => id.trim());
  trees.set(base, asked);
  asked.catch(() => trees.delete(base));
  return await asked;
}
