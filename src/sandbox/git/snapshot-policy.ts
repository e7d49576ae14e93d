import { posix } from "node:path";
import { SandboxError } from "../errors.js";
import { hostGit, runHostGit } from "./host-git.js";
import { inRepository } from "./repository.js";

const GITLINK = "160000";
const SYMLINK = "120000";
const MOST_LINKS = 1000;

/** One path that differs between two trees. */
interface Difference {
  readonly mode: string;
  readonly sha: string;
  readonly path: string;
}

/**
 * Looks at what a snapshot brings into the repository, beyond what git's own check refuses. Gives what the user should
 * know; throws `tampered` for what must not come in.
 */
export async function checkSnapshot(gitDir: string, commit: string, base: string | undefined): Promise<string[]> {
  const warnings: string[] = [];
  const range = base === undefined ? ["--root", commit] : [base, commit];
  const changes = await listChanges(gitDir, ["diff-tree", "--no-commit-id"], range);
  await refuseLinks(gitDir, changes);
  for (const { path, sha } of changes.filter((change) => change.mode === SYMLINK).slice(0, MOST_LINKS)) {
    const target = await readBlob(gitDir, sha);
    const landing = posix.normalize(posix.join(posix.dirname(path), target));
    if (!target.startsWith("/") && landing !== ".." && !landing.startsWith("../")) continue;
    warnings.push(`The link ${JSON.stringify(path)} leads outside, to ${JSON.stringify(target)}`);
  }
  return warnings;
}

/** Looks at every commit between two as `checkSnapshot` does at one; the newer must descend from the older. */
export async function checkHistory(gitDir: string, head: string, base: string): Promise<void> {
  const answer = await runHostGit(["merge-base", "--is-ancestor", base, head], inRepository(gitDir));
  if (answer.exitCode !== 0) throw new SandboxError("tampered", "The commits made inside are not what they seemed");
  // With every parent of a merge, so that nothing can hide in one.
  const log = ["log", "--format=", "-m", "--root", "--no-show-signature", "--no-ext-diff", "--no-textconv"];
  await refuseLinks(gitDir, await listChanges(gitDir, log, [head, `^${base}`]));
}

async function refuseLinks(gitDir: string, changes: readonly Difference[]): Promise<void> {
  for (const { path } of changes.filter((change) => change.mode === GITLINK)) {
    throw new SandboxError("tampered", `The snapshot holds a link to another repository at ${JSON.stringify(path)}`);
  }
  for (const { path, sha } of changes) {
    if (posix.basename(path).toLowerCase() !== ".gitmodules") continue;
    const content = await readBlob(gitDir, sha);
    // A carriage return at the end of a path leads a git before 2.50.1 to check out a submodule elsewhere.
    if (content.includes("\r")) throw new SandboxError("tampered", `The snapshot has a carriage return in ${path}`);
  }
}

async function readBlob(gitDir: string, sha: string): Promise<string> {
  return await hostGit(["cat-file", "blob", sha], { ...inRepository(gitDir), maxOutput: 1024 * 1024 });
}

/** What the given command of git lists as changed between the given commits and is still there. */
async function listChanges(gitDir: string, command: string[], range: string[]): Promise<Difference[]> {
  const query = [...command, "-r", "-z", "--raw", "--no-renames", "--no-abbrev", ...range, "--"];
  const { exitCode, stdout, stderr } = await runHostGit(query, {
    ...inRepository(gitDir),
    maxOutput: 256 * 1024 * 1024,
  });
  if (exitCode !== 0) throw new SandboxError("tampered", `The snapshot cannot be read: ${stderr.trim()}`);
  const changes: Difference[] = [];
  const parts = stdout.split("\0").filter(Boolean);
  for (let n = 0; n + 1 < parts.length; n += 2) {
    const [, mode = "", , sha = ""] = (parts[n] ?? "").split(" ");
    if (!parts[n]?.startsWith(":")) throw new SandboxError("tampered", "The snapshot cannot be read");
    if (mode !== "000000") changes.push({ mode, sha, path: parts[n + 1] ?? "" });
  }
  return changes;
}
