import { isBranchName } from "../branch-name.js";
import { SandboxError } from "../errors.js";
import { INSIDE_OBJECTS } from "./git-directory.js";
import { gitError } from "./host-git.js";

/** What a jailed git answered. */
export interface JailedGitResult {
  exitCode: number;
  stdout: Uint8Array;
  stderr: string;
}

/**
 * Runs git in a jail: the store writable at `/gd` and its git directory, the sandbox's tree read-only at `/wt` and its
 * work tree, the source's objects read-only at `/glovebox/objects` (and its alternates at their own paths), no network,
 * no capabilities, nothing else of the host's.
 */
export type RunJailedGit = ((
  args: readonly string[],
  opts?: { stdin?: Uint8Array; env?: Readonly<Record<string, string>> },
) => Promise<JailedGitResult>) & {
  /** Ends the jail, when it outlives a call. */
  end?(): Promise<void>;
};

const CONFIG = ["safe.directory=*", "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.bare=false"];
const NO_COMMIT = /^error: '(.*?)\/?' does not have a commit checked out$/;
const GITLINK = "160000";

/** A git in its jail whose output is one character a byte. */
type Jailed = (args: string[], stdin?: string) => Promise<JailedGitResult & { text: string }>;

/** Where the inside's own history stands. */
export interface InsideHead {
  readonly sha: string;
  /** Absent when no branch is checked out. */
  readonly branch?: string;
}

/** What a jailed commit is made on. */
export interface CommitPlan {
  sandboxId: string;
  /** The commit that the sandbox started from. */
  base: string | undefined;
  /** The store has an index that knows how the base's files looked when they were written. Default false. */
  isIndexed?: boolean;
  /** Where the jail sees the git directory of the inside, whose commits are to come along. */
  inside?: string | undefined;
  /** A commit that is known to be in the source and to descend from the base: the parent instead of the base. */
  parent?: string | undefined;
}

/** A commit that a jail made. Nothing of it is to be believed before it was checked. */
export interface JailedCommit {
  readonly commit: string;
  /** The last of the commits made inside, which is the parent. Absent: they are not in it. */
  readonly head?: InsideHead;
  /** Name of the file in the store that holds its objects, less those of the base. */
  readonly pack: string;
  /** Directories that are repositories of their own; they stay as they are in the base, see `restoreLinks`. */
  readonly nested: readonly string[];
  /** What lies in the tree and not in the commit, a directory with a slash at its end; one character a byte. */
  readonly others: readonly string[];
  /** Why the commits made inside are not in it. */
  readonly complaint?: string;
}

/** Commits the jail's tree on top of a base, or of what was committed inside since, and packs it. */
export async function commitInJail(runJailedGit: RunJailedGit, plan: CommitPlan): Promise<JailedCommit> {
  const { base, inside } = plan;
  const jailed = jail(runJailedGit, base !== undefined, inside);
  const isUsable = await readBase(jailed, base);
  // Without this every unchanged file would be written as an object once more. Answers 1 when something has changed.
  if (!isUsable || plan.isIndexed !== true) await jailed(["update-index", "-q", "--refresh"]);
  const unborn = await addAll(jailed);
  const { changed, links } = await restoreLinks(jailed, base);
  const others = (await must(jailed, ["ls-files", "--others", "--directory", "-z"])).split("\0").filter(Boolean);
  const tree = hash(await must(jailed, ["write-tree"]));
  const found = inside === undefined || base === undefined ? undefined : await findInsideHead(jailed, inside, base);
  const head = typeof found === "object" ? found : undefined;
  const onto = head?.sha ?? plan.parent ?? base;
  const message = `Snapshot of sandbox ${plan.sandboxId}`;
  const parent = onto === undefined ? [] : ["-p", onto];
  const commit = hash(await must(jailed, ["commit-tree", ...parent, "-m", message, tree]));
  const known = [base, plan.parent].filter((sha) => sha !== undefined).map((sha) => `^${sha}\n`);
  const range = `${commit}\n${known.join("")}`;
  const name = hash(await must(jailed, ["pack-objects", "--revs", "--quiet", "/gd/snapshot"], range));
  return {
    commit,
    ...(head && { head }),
    pack: `snapshot-${name}.pack`,
    nested: [...unborn, ...changed],
    others: [...others, ...links.map((path) => `${path}/`)],
    ...(typeof found === "string" && { complaint: found }),
  };
}

/** Makes the index one of the base. Tells whether it still knows of the base's files what it knew before. */
async function readBase(jailed: Jailed, base: string | undefined): Promise<boolean> {
  if (base !== undefined) {
    if ((await jailed(["diff-index", "--cached", "--quiet", base, "--"])).exitCode === 0) return true;
    if ((await jailed(["read-tree", "-m", base])).exitCode === 0) return true;
  }
  // There is none, or one that cannot be used.
  await must(jailed, ["read-tree", base ?? "--empty"]);
  return false;
}

function jail(runJailedGit: RunJailedGit, hasSource: boolean, inside: string | undefined): Jailed {
  const stores = [...(hasSource ? [INSIDE_OBJECTS] : []), ...(inside === undefined ? [] : [`${inside}/objects`])];
  const env = {
    ...(stores.length > 0 && { GIT_ALTERNATE_OBJECT_DIRECTORIES: stores.join(":") }),
    GIT_AUTHOR_NAME: "Glovebox",
    GIT_AUTHOR_EMAIL: "glovebox@localhost",
    GIT_COMMITTER_NAME: "Glovebox",
    GIT_COMMITTER_EMAIL: "glovebox@localhost",
  };
  const settings = CONFIG.flatMap((setting) => ["-c", setting]);
  return async (args, stdin) => {
    const input = stdin === undefined ? {} : { stdin: Buffer.from(stdin, "latin1") };
    const result = await runJailedGit([...settings, ...args], { env, ...input });
    // One character a byte: a file name need not be UTF-8, and must go back as it came.
    return { ...result, text: Buffer.from(result.stdout).toString("latin1") };
  };
}

async function must(jailed: Jailed, args: string[], stdin?: string): Promise<string> {
  const result = await jailed(args, stdin);
  if (result.exitCode === 0) return result.text;
  throw gitError(args, { exitCode: result.exitCode, stdout: "", stderr: result.stderr });
}

/** Adds every file; a nested repository without a commit cannot be added and is given back. */
async function addAll(jailed: Jailed): Promise<string[]> {
  const args = ["add", "--all", "--ignore-errors", "--", ":/"];
  const result = await jailed(args);
  if (result.exitCode === 0) return [];
  const complaints = result.stderr.split("\n").filter((line) => /^(error|fatal):/.test(line));
  const unborn = complaints.map((line) => NO_COMMIT.exec(line)?.[1]);
  const isComplete = unborn.length > 0 && !unborn.includes(undefined);
  if (result.exitCode === 1 && isComplete) return unborn.filter((path) => path !== undefined);
  const other = complaints.filter((line) => !NO_COMMIT.test(line)).join("\n");
  throw gitError(args, { exitCode: result.exitCode, stdout: "", stderr: other || result.stderr });
}

/**
 * Puts links to other repositories back as they are in the base, because the commits they link to would not come along.
 * Gives all links, and the names of those that differed.
 */
async function restoreLinks(jailed: Jailed, base: string | undefined): Promise<{ changed: string[]; links: string[] }> {
  const now = parseLinks(await must(jailed, ["ls-files", "--stage", "-z"]), 1);
  if (now.size === 0) return { changed: [], links: [] };
  const before = base === undefined ? new Map() : parseLinks(await must(jailed, ["ls-tree", "-r", "-z", base]), 2);
  const changed = [...now].filter(([path, sha]) => before.get(path) !== sha);
  const entries = changed.map(([path, sha]) => {
    const old = before.get(path);
    return old === undefined ? `0 ${"0".repeat(sha.length)}\t${path}\0` : `${GITLINK} ${old}\t${path}\0`;
  });
  if (entries.length > 0) await must(jailed, ["update-index", "-z", "--index-info"], entries.join(""));
  return { changed: changed.map(([path]) => Buffer.from(path, "latin1").toString()), links: [...now.keys()] };
}

/** The commit that is checked out inside, or why it cannot be built upon. */
async function findInsideHead(jailed: Jailed, inside: string, base: string): Promise<InsideHead | string> {
  const there = `--git-dir=${inside}`;
  const answer = await jailed([there, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
  if (answer.exitCode !== 0) return "the git directory inside has no commit that can be read";
  const sha = hash(answer.text);
  const isAncestor = sha === base || (await jailed(["merge-base", "--is-ancestor", base, sha])).exitCode === 0;
  if (!isAncestor) return "they do not descend from the commit that the sandbox started from";
  const [, branch] = /^refs\/heads\/([^\n]+)\n$/.exec((await jailed([there, "symbolic-ref", "HEAD"])).text) ?? [];
  return isBranchName(branch) ? { sha, branch } : { sha };
}

/** The links in a listing of git's, as path and commit, which is the given word of the part before the path. */
function parseLinks(listing: string, word: number): Map<string, string> {
  const links = new Map<string, string>();
  for (const entry of listing.split("\0")) {
    const tab = entry.indexOf("\t");
    const sha = entry.slice(0, tab).split(" ")[word];
    if (entry.startsWith(`${GITLINK} `) && sha !== undefined) links.set(entry.slice(tab + 1), sha);
  }
  return links;
}

function hash(text: string): string {
  const found = text.trim();
  if (/^([0-9a-f]{40}|[0-9a-f]{64})$/.test(found)) return found;
  throw new SandboxError("tampered", "The jail did not answer with an object id");
}
