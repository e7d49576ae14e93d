import { join } from "node:path";
import { gitError } from "../host.js";
import { type Repository, resolveCommit } from "./repository.js";
import { type RepositoryGitOptions, repositoryGit, runRepositoryGit } from "./repository-git.js";

/** Without nested repositories: git would obey their settings. */
const DIFF = ["diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];

/** The files in the user's working tree that differ from the commit checked out there; a new directory is one, unless `eachFile`. */
export async function uncommittedFiles(
  { gitDir, ownGitDir = gitDir, topLevel }: Repository,
  { withUntracked = false, eachFile = false }: { withUntracked?: boolean; eachFile?: boolean } = {},
): Promise<string[]> {
  if (topLevel === undefined) return [];
  const head = await resolveCommit(gitDir, "HEAD", ownGitDir);
  if (head === undefined) return [];
  const place: RepositoryGitOptions = { workTree: topLevel, index: join(ownGitDir, "index"), isForeignTree: true };
  const query = [...DIFF, head, "--"];
  const changed = await runRepositoryGit(query, gitDir, place);
  if (changed.exitCode !== 0) throw gitError(query, changed);
  const whole = eachFile ? [] : ["--directory", "--no-empty-directory"];
  const others = ["ls-files", "--others", "--exclude-standard", ...whole, "-z"];
  // With the user's global ignore rules.
  const untracked = withUntracked ? await repositoryGit(others, gitDir, { ...place, withUserSettings: true }) : "";
  return `${changed.stdout}${untracked}`.split("\0").filter((path) => path !== "");
}
