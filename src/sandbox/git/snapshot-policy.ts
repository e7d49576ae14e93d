import { posix } from "node:path";
import { SandboxError } from "../errors.js";
import { type HostGitOptions, hostGit, runHostGit } from "./host-git.js";
import { NO_CONFIG } from "./private-store.js";
import { inRepository } from "./repository.js";

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

/**
 * Looks at what a snapshot brings into the repository, beyond what git's own check refuses. Gives what the user should
 * know; throws `tampered` for what must not come in.
 */
export async function checkSnapshot(
  gitDir: string,
  commit: string,
  { parent, base }: { parent: string | undefined; base: string | undefined },
): Promise<string[]> {
  const warnings: string[] = [];
  const [own, all] = await Promise.all([
    readCommit(gitDir, commit, parent),
    parent === base || base === undefined
      ? undefined
      : listChanges(gitDir, ["diff-tree", "--no-commit-id"], [base, commit]),
  ]);
  const changes = all ?? own;
  await refuseLinks(gitDir, changes);
  for (const { path, sha } of changes.filter((change) => change.mode === SYMLINK).slice(0, MOST_LINKS)) {
    warnings.push(...(warnOfLink(path, await readBlob(gitDir, sha)) ?? []));
  }
  return warnings;
}

/** What the user should know about a link: that it leads out of the tree. */
export function warnOfLink(path: string, target: string): [string] | undefined {
  const landing = posix.normalize(posix.join(posix.dirname(path), target));
  if (!target.startsWith("/") && landing !== ".." && !landing.startsWith("../")) return undefined;
  return [`The link ${JSON.stringify(path)} leads outside, to ${JSON.stringify(target)}`];
}

/** What a commit changes. Refuses one that is not the one it should be, on the parent that it should have. */
async function readCommit(gitDir: string, commit: string, parent: string | undefined): Promise<Difference[]> {
  const query = [...LOG, "--max-count=1", "--format=%H %P", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", commit];
  const [story = "", ...parts] = (await read(gitDir, [...query, "--"])).split("\0");
  if (story.trim() !== [commit, ...(parent === undefined ? [] : [parent])].join(" ")) {
    throw new SandboxError("tampered", "The snapshot is not the commit that it should be, on the base of the sandbox");
  }
  return parse([(parts[0] ?? "").trimStart(), ...parts.slice(1)]);
}

/** Looks at every commit between two as `checkSnapshot` does at one; the newer must descend from the older. */
export async function checkHistory(gitDir: string, head: string, base: string): Promise<void> {
  const answer = await runHostGit(["merge-base", "--is-ancestor", base, head], inStore(gitDir));
  if (answer.exitCode !== 0) throw new SandboxError("tampered", "The commits made inside are not what they seemed");
  // With every parent of a merge, so that nothing can hide in one.
  await refuseLinks(gitDir, await listChanges(gitDir, [...LOG, "--format="], [head, `^${base}`]));
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
  return await hostGit(["cat-file", "blob", sha], { ...inStore(gitDir), maxOutput: 1024 * 1024 });
}

/** What the given command of git lists as changed between the given commits and is still there. */
async function listChanges(gitDir: string, command: string[], range: string[]): Promise<Difference[]> {
  const query = [...command, "-r", "-z", "--raw", "--no-renames", "--no-abbrev", ...range, "--"];
  return parse((await read(gitDir, query)).split("\0"));
}

/** No setting of the user's has a say in what is seen. */
function inStore(gitDir: string): HostGitOptions {
  return { ...inRepository(gitDir), env: NO_CONFIG };
}

async function read(gitDir: string, query: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await runHostGit(query, {
    ...inStore(gitDir),
    maxOutput: 256 * 1024 * 1024,
  });
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
