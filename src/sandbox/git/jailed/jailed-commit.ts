import { toSandboxError } from "../../../../contracts/errors.js";
import { isBranchName } from "../../../util/git/branch-name.js";
import type { SandboxHead } from "../live-tree.js";
import { INSIDE_OBJECTS } from "../repository.js";
import type { RunJailedGit } from "./jailed-git.js";
import { addAll, type CommitDetails, commitPaths, GITLINK, hash, type Jailed, must } from "./jailed-paths.js";

/** In a store: the index as the host made it, beside the one that git changes. */
export const INDEX_OF_BASE = "index-of-base";

/** What `commitInJail` needs. */
export interface CommitPlan {
  sandboxId: string;
  /** The message. Default: one that names the sandbox. */
  message?: string | undefined;
  /** The commit that the sandbox started from. */
  base: string | undefined;
  /** Whether the store has the index of the base's files. Default false. */
  isIndexed?: boolean | undefined;
  /** Where the jail sees the sandbox git, if its commits should come along. */
  sandboxGit?: string | undefined;
  /** The parent, instead of the base: a commit of the source that descends from the base. */
  parent?: string | undefined;
  /** All paths that can differ from the base, each ended by a zero byte. Absent: unknown. */
  changedPaths?: Uint8Array | undefined;
  /** Whether to list what the commit leaves out, which takes as long as the rest. Default false. */
  withOthers?: boolean | undefined;
}

/** A commit that jailed git made. Untrusted until it is checked. */
export interface JailedCommit {
  readonly commit: string;
  /** What is checked out in the sandbox git, and the parent. Absent: the sandbox's commits are not in it. */
  readonly head?: SandboxHead;
  /** The file in the store with its objects, without those of the base. */
  readonly pack: string;
  /** Directories that are repositories of their own; in the commit they are as in the base. */
  readonly nested: readonly string[];
  /** Files that are not in the commit, directories with a slash at the end; one character per byte. Empty unless asked for. */
  readonly others: readonly string[];
  /** Why the sandbox's commits are not in it. */
  readonly complaint?: string;
}

/** Commits the files on the base, or on what the sandbox committed since, and packs the commit. */
export async function commitInJail(runJailedGit: RunJailedGit, plan: CommitPlan): Promise<JailedCommit> {
  const { base, sandboxGit } = plan;
  const jailed = jail(runJailedGit, base !== undefined, sandboxGit);
  // Git adds the files meanwhile.
  const looking =
    sandboxGit === undefined || base === undefined ? undefined : findSandboxHead(jailed, sandboxGit, base);
  looking?.catch(() => undefined);
  const details = async (): Promise<CommitDetails> => {
    const found = await looking;
    const parent = (typeof found === "object" ? found.sha : undefined) ?? plan.parent ?? base;
    return { parent, message: plan.message ?? snapshotMessage(plan.sandboxId) };
  };
  const { commit, nested, others } =
    (await commitChanged(jailed, plan, details)) ?? (await commitAll(jailed, plan, details));
  const found = await looking;
  const known = [base, plan.parent].filter((sha) => sha !== undefined).map((sha) => `^${sha}\n`);
  const range = `${commit}\n${known.join("")}`;
  const name = hash(await must(jailed, ["pack-objects", "--revs", "--quiet", "/gd/snapshot"], range));
  return {
    commit,
    ...(typeof found === "object" && { head: found }),
    pack: `snapshot-${name}.pack`,
    nested,
    others,
    ...(typeof found === "string" && { complaint: found }),
  };
}

/** The message of a snapshot's commit. */
export function snapshotMessage(sandboxId: string): string {
  return `Snapshot of sandbox ${sandboxId}`;
}

type Committed = Pick<JailedCommit, "commit" | "nested" | "others">;
type Details = () => Promise<CommitDetails>;

/** Commits the few paths that can differ; undefined when that is not enough or doesn't work. */
async function commitChanged(jailed: Jailed, plan: CommitPlan, details: Details): Promise<Committed | undefined> {
  const { base, changedPaths, withOthers } = plan;
  if (base === undefined || changedPaths === undefined || withOthers === true) return undefined;
  try {
    return { ...(await commitPaths(jailed, changedPaths, base, await details())), others: [] };
  } catch (error) {
    if (toSandboxError(error).code !== "internal") throw error;
    return undefined;
  }
}

async function commitAll(jailed: Jailed, plan: CommitPlan, details: Details): Promise<Committed> {
  const { base } = plan;
  const unborn = (await addChanged(jailed, plan)) ?? (await addAnew(jailed, base));
  const [written, listed] = await Promise.all([
    must(jailed, ["write-tree"]),
    plan.withOthers === true ? listFiles(jailed) : undefined,
  ]);
  const { tree, changed } = await withLinksOfBase(jailed, base, hash(written), listed?.links);
  const others = listed === undefined ? [] : [...listed.others, ...[...listed.links.keys()].map((path) => `${path}/`)];
  const { parent, message } = await details();
  const onto = parent === undefined ? [] : ["-p", parent];
  const commit = hash(await must(jailed, ["commit-tree", ...onto, "-m", message, tree]));
  return { commit, nested: [...unborn, ...changed], others };
}

/** Adds what has changed to the index of the base; undefined when that index is of another commit. */
async function addChanged(jailed: Jailed, plan: CommitPlan): Promise<string[] | undefined> {
  const { base, isIndexed, changedPaths } = plan;
  if (base === undefined || isIndexed !== true) return undefined;
  const compare = ["diff-index", "--cached", "--quiet", base, "--"];
  const [comparison, unborn] = await Promise.all([
    jailed(compare, undefined, { GIT_INDEX_FILE: `/gd/${INDEX_OF_BASE}` }),
    addAll(jailed, changedPaths),
  ]);
  return comparison.exitCode === 0 ? unborn : undefined;
}

/** Makes a new index of the base, and adds everything. */
async function addAnew(jailed: Jailed, base: string | undefined): Promise<string[]> {
  const isMerged = base !== undefined && (await jailed(["read-tree", "-m", base])).exitCode === 0;
  if (!isMerged) await must(jailed, ["read-tree", base ?? "--empty"]);
  // Without this, git would write every unchanged file as an object again. Exits with 1 when something has changed.
  await jailed(["update-index", "-q", "--refresh"]);
  return await addAll(jailed, undefined);
}

function jail(runJailedGit: RunJailedGit, hasSource: boolean, sandboxGit: string | undefined): Jailed {
  const stores = [
    ...(hasSource ? [INSIDE_OBJECTS] : []),
    ...(sandboxGit === undefined ? [] : [`${sandboxGit}/objects`]),
  ];
  const env = {
    ...(stores.length > 0 && { GIT_ALTERNATE_OBJECT_DIRECTORIES: stores.join(":") }),
    GIT_AUTHOR_NAME: "Glovebox",
    GIT_AUTHOR_EMAIL: "glovebox@localhost",
    GIT_COMMITTER_NAME: "Glovebox",
    GIT_COMMITTER_EMAIL: "glovebox@localhost",
  };
  return async (args, stdin, more) => {
    const input = stdin === undefined ? {} : { stdin: Buffer.from(stdin, "latin1") };
    const result = await runJailedGit(args, { env: { ...env, ...more }, ...input });
    // One character per byte: a file name need not be UTF-8, and must stay as it is.
    return { ...result, text: Buffer.from(result.stdout).toString("latin1") };
  };
}

/**
 * Makes a tree of the index with submodules as they are in the base: the commits that they name would be missing. Also returns those that
 * differ. `tree` is the tree of the index, `known` all submodules in it.
 */
async function withLinksOfBase(
  jailed: Jailed,
  base: string | undefined,
  tree: string,
  known: Map<string, Link> | undefined,
): Promise<{ tree: string; changed: string[] }> {
  if (known?.size === 0) return { tree, changed: [] };
  const links =
    base === undefined ? (known ?? (await listFiles(jailed)).links) : await changedLinks(jailed, base, tree);
  if (links.size === 0) return { tree, changed: [] };
  const entries = [...links].map(([path, { before, now }]) =>
    before === undefined ? `0 ${"0".repeat(now.length)}\t${path}\0` : `${GITLINK} ${before}\t${path}\0`,
  );
  await must(jailed, ["update-index", "-z", "--index-info"], entries.join(""));
  const changed = [...links.keys()].map((path) => Buffer.from(path, "latin1").toString());
  return { tree: hash(await must(jailed, ["write-tree"])), changed };
}

/** A submodule: its commit now, and in the base if it is one there too. */
interface Link {
  readonly now: string;
  readonly before?: string;
}

/** What a commit leaves out: ignored files, and nested repositories, which the index has as submodules. */
async function listFiles(jailed: Jailed): Promise<{ others: string[]; links: Map<string, Link> }> {
  const links = new Map<string, Link>();
  const others: string[] = [];
  for (const entry of (await must(jailed, ["ls-files", "-t", "--stage", "--others", "--directory", "-z"])).split(
    "\0",
  )) {
    if (entry.startsWith("? ")) others.push(entry.slice(2));
    const tab = entry.indexOf("\t");
    const [tag, mode, now] = entry.slice(0, tab).split(" ");
    if (tag === "H" && mode === GITLINK && now !== undefined) links.set(entry.slice(tab + 1), { now });
  }
  return { others, links };
}

async function changedLinks(jailed: Jailed, base: string, tree: string): Promise<Map<string, Link>> {
  const links = new Map<string, Link>();
  const compare = ["diff-tree", "-r", "--raw", "--no-abbrev", "--no-renames", "-z", base, tree, "--"];
  const parts = (await must(jailed, compare)).split("\0");
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [modeBefore, mode, before = "", now = ""] = (parts[at] ?? "").slice(1).split(" ");
    if (mode === GITLINK) links.set(parts[at + 1] ?? "", modeBefore === GITLINK ? { now, before } : { now });
  }
  return links;
}

/** What is checked out in the sandbox git, or why the commit can't be based on it. */
async function findSandboxHead(jailed: Jailed, sandboxGit: string, base: string): Promise<SandboxHead | string> {
  const there = `--git-dir=${sandboxGit}`;
  const [answer, name] = await Promise.all([
    jailed([there, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"]),
    jailed([there, "symbolic-ref", "HEAD"]),
  ]);
  if (answer.exitCode !== 0) return "the git directory of the sandbox has no readable commit";
  const sha = hash(answer.text);
  const isAncestor = sha === base || (await jailed(["merge-base", "--is-ancestor", base, sha])).exitCode === 0;
  if (!isAncestor) return "they do not descend from the commit that the sandbox started from";
  const [, branch] = /^refs\/heads\/([^\n]+)\n$/.exec(name.text) ?? [];
  return isBranchName(branch) ? { sha, branch } : { sha };
}
