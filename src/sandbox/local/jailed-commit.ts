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
export type RunJailedGit = (
  args: readonly string[],
  opts?: { stdin?: Uint8Array; env?: Readonly<Record<string, string>> },
) => Promise<JailedGitResult>;

const CONFIG = ["safe.directory=*", "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.bare=false"];
const NO_COMMIT = /^error: '(.*?)\/?' does not have a commit checked out$/;
const GITLINK = "160000";

type Jailed = (args: string[], stdin?: string) => Promise<JailedGitResult & { text: string }>;

/** A commit that a jail made. Nothing of it is to be believed before it was checked. */
export interface JailedCommit {
  readonly commit: string;
  /** Name of the file in the store that holds its objects, less those of the base. */
  readonly pack: string;
  /** Directories that are repositories of their own; they stay as they are in the base, see `restoreLinks`. */
  readonly nested: readonly string[];
}

/** Commits the jail's tree on top of a base, and packs it. */
export async function commitInJail(
  runJailedGit: RunJailedGit,
  sandboxId: string,
  base: string | undefined,
): Promise<JailedCommit> {
  const jailed = jail(runJailedGit, base !== undefined);
  await must(jailed, ["read-tree", base ?? "--empty"]);
  const unborn = await addAll(jailed);
  const linked = await restoreLinks(jailed, base);
  const tree = hash(await must(jailed, ["write-tree"]));
  const parent = base === undefined ? [] : ["-p", base];
  const message = `Snapshot of sandbox ${sandboxId}`;
  const commit = hash(await must(jailed, ["commit-tree", ...parent, "-m", message, tree]));
  const range = base === undefined ? `${commit}\n` : `${commit}\n^${base}\n`;
  const name = hash(await must(jailed, ["pack-objects", "--revs", "--quiet", "/gd/snapshot"], range));
  return { commit, pack: `snapshot-${name}.pack`, nested: [...unborn, ...linked] };
}

function jail(runJailedGit: RunJailedGit, hasSource: boolean): Jailed {
  const env = {
    ...(hasSource && { GIT_ALTERNATE_OBJECT_DIRECTORIES: INSIDE_OBJECTS }),
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
 * Gives the paths of those that differed.
 */
async function restoreLinks(jailed: Jailed, base: string | undefined): Promise<string[]> {
  const now = parseLinks(await must(jailed, ["ls-files", "--stage", "-z"]), 1);
  if (now.size === 0) return [];
  const before = base === undefined ? new Map() : parseLinks(await must(jailed, ["ls-tree", "-r", "-z", base]), 2);
  const changed = [...now].filter(([path, sha]) => before.get(path) !== sha);
  const entries = changed.map(([path, sha]) => {
    const old = before.get(path);
    return old === undefined ? `0 ${"0".repeat(sha.length)}\t${path}\0` : `${GITLINK} ${old}\t${path}\0`;
  });
  if (entries.length > 0) await must(jailed, ["update-index", "-z", "--index-info"], entries.join(""));
  return changed.map(([path]) => Buffer.from(path, "latin1").toString());
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
