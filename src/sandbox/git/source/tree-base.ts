import { type Repository, repositoryGit } from "../repository.js";

/** The commit that the files of a sandbox started from, in the user's repository. Nothing but data: it can be written down. */
export interface TreeBase {
  repository: Repository;
  sha: string;
  /** The sandbox's own; in the repository it may exist or not. */
  branch: string;
  /** An index that belongs to the files of the commit, which only the host writes. Absent: every file is read. */
  index?: string;
  /** The own git directory of a worktree that the repository knows; its files are then at the driver's `workDir`. */
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
