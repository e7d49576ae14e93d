import { assertBranchName } from "../branch-name.js";
import { SandboxError } from "../errors.js";
import { type Repository, resolveCommit } from "./repository.js";

/** The commit to start from: that of a branch which was named and exists, else HEAD's. `repo` is what the caller called it. */
export async function findStart(repo: string, { gitDir }: Repository, branch: string | undefined): Promise<string> {
  if (branch !== undefined) assertBranchName(branch);
  const own = branch === undefined ? undefined : await resolveCommit(gitDir, `refs/heads/${branch}`);
  const sha = own ?? (await resolveCommit(gitDir, "HEAD"));
  if (sha !== undefined) return sha;
  throw new SandboxError("invalid_argument", `Invalid repo "${repo}" — it has no commit yet`, { hint: "git commit" });
}
