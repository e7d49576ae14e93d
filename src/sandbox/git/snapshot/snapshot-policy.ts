import { posix } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import { gitError, type RunGit } from "../host.js";

const GITLINK = "160000";
const SYMLINK = "120000";
const MOST_LINKS = 1000;
const LOG = ["log", "-m", "--root", "--no-show-signature", "--no-ext-diff", "--no-textconv"];

/** One path that differs between two trees. */
interface Difference {
  readonly mode: string;
  readonly sha: string;
  readonly path: string;
}

/** Checks a snapshot beyond git's own checks. Returns warnings for the user; throws `tampered` for what must not come in. */
export async function checkSnapshot(
  git: RunGit,
  commit: string,
  { parent, base }: { parent: string | undefined; base: string | undefined },
): Promise<string[]> {
  const warnings: string[] = [];
  const [own, all] = await Promise.all([
    readCommit(git, commit, parent),
    parent === base || base === undefined
      ? undefined
      : listChanges(git, ["diff-tree", "--no-commit-id"], [base, commit]),
  ]);
  const changes = all ?? own;
  await refuseLinks(git, changes);
  for (const { path, sha } of changes.filter((change) => change.mode === SYMLINK).slice(0, MOST_LINKS)) {
    warnings.push(...(warnOfLink(path, await readBlob(git, sha)) ?? []));
  }
  return warnings;
}

/** The warning about a symbolic link that leads out of the tree. */
export function warnOfLink(path: string, target: string): [string] | undefined {
  const landing = posix.normalize(posix.join(posix.dirname(path), target));
  if (!target.startsWith("/") && landing !== ".." && !landing.startsWith("../")) return undefined;
  return [`The link ${JSON.stringify(path)} leads outside, to ${JSON.stringify(target)}`];
}

/** What a commit changes. Refuses another commit than the expected one, and another parent. */
async function readCommit(git: RunGit, commit: string, parent: string | undefined): Promise<Difference[]> {
  const query = [...LOG, "--max-count=1", "--format=%H %P", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", commit];
  const [story = "", ...parts] = (await read(git, [...query, "--"])).split("\0");
  if (story.trim() !== [commit, ...(parent === undefined ? [] : [parent])].join(" ")) {
    throw new SandboxError("tampered", "The snapshot is not the expected commit on the expected parent");
  }
  return parse([(parts[0] ?? "").trimStart(), ...parts.slice(1)]);
}

/** Checks every commit between two as `checkSnapshot` checks one; the newer must descend from the older. */
export async function checkHistory(git: RunGit, head: string, base: string): Promise<void> {
  const answer = await git(["merge-base", "--is-ancestor", base, head]);
  if (answer.exitCode !== 0)
    throw new SandboxError("tampered", "The commits of the sandbox do not descend from its base");
  // With every parent of a merge, so that nothing can hide in one.
  await refuseLinks(git, await listChanges(git, [...LOG, "--format="], [head, `^${base}`]));
}

async function refuseLinks(git: RunGit, changes: readonly Difference[]): Promise<void> {
  for (const { path } of changes.filter((change) => change.mode === GITLINK)) {
    throw new SandboxError("tampered", `The snapshot holds a link to another repository at ${JSON.stringify(path)}`);
  }
  for (const { path, sha } of changes) {
    if (posix.basename(path).toLowerCase() !== ".gitmodules") continue;
    const content = await readBlob(git, sha);
    // A carriage return at the end of a path leads a git before 2.50.1 to check out a submodule elsewhere.
    if (content.includes("\r")) throw new SandboxError("tampered", `The snapshot has a carriage return in ${path}`);
  }
}

async function readBlob(git: RunGit, sha: string): Promise<string> {
  const query = ["cat-file", "blob", sha];
  const answer = await git(query, { maxOutput: 1024 * 1024 });
  if (answer.exitCode === 0) return answer.stdout;
  throw gitError(query, answer);
}

/** What git lists as added or changed between commits. */
async function listChanges(git: RunGit, command: string[], range: string[]): Promise<Difference[]> {
  const query = [...command, "-r", "-z", "--raw", "--no-renames", "--no-abbrev", ...range, "--"];
  return parse((await read(git, query)).split("\0"));
}

async function read(git: RunGit, query: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await git(query, { maxOutput: 256 * 1024 * 1024 });
  if (exitCode !== 0) throw new SandboxError("tampered", `The snapshot cannot be read: ${stderr.trim()}`);
  return stdout;
}

function parse(answer: readonly string[]): Difference[] {
  const changes: Difference[] = [];
  const parts = answer.filter(Boolean);
  for (let n = 0; n + 1 < parts.length; n += 2) {
    const [, mode = "", , sha = ""] = (parts[n] ?? "").split(" ");
    if (!parts[n]?.startsWith(":")) throw new SandboxError("tampered", "The snapshot cannot be read");
    if (mode !== "000000") changes.push({ mode, sha, path: parts[n + 1] ?? "" });
  }
  return changes;
}
