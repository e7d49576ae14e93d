import { toSandboxError } from "../../../../contracts/errors.js";
import { isBranchName } from "../../../util/branch-name.js";
import type { SandboxHead } from "../live-tree.js";
import { INSIDE_OBJECTS } from "../repository.js";
import type { RunJailedGit } from "./jailed-git.js";
import { addAll, type CommitDetails, commitPaths, GITLINK, hash, type Jailed, must } from "./jailed-paths.js";

/** In a store: the index as the host made it, beside the one that changes. */
export const INDEX_OF_BASE = "index-of-base";

/** What a jailed commit is made on. */
export interface CommitPlan {
  sandboxId: string;
  /** Of the commit. Default: one that names the sandbox. */
  message?: string | undefined;
  /** The commit that the sandbox started from. */
  base: string | undefined;
  /** The store has an index that knows how the base's files looked when they were written. Default false. */
  isIndexed?: boolean | undefined;
  /** Where the jail sees the git directory of the inside, whose commits are to come along. */
  sandboxGit?: string | undefined;
  /** A commit that is known to be in the source and to descend from the base: the parent instead of the base. */
  parent?: string | undefined;
  /** All paths that can differ from the base, each ended by a zero byte. Absent: that is not known. */
  changedPaths?: Uint8Array | undefined;
  /** Whether to look for what does not come along, which takes as long as the rest. Default false. */
  withOthers?: boolean | undefined;
}

/** A commit that a jail made. Nothing of it is to be believed before it was checked. */
export interface JailedCommit {
  readonly commit: string;
  /** The last of the commits made inside, which is the parent. Absent: they are not in it. */
  readonly head?: SandboxHead;
  /** Name of the file in the store that holds its objects, less those of the base. */
  readonly pack: string;
  /** Directories that are repositories of their own; they stay as they are in the base, see `writeTree`. */
  readonly nested: readonly string[];
  /** What lies in the tree and not in the commit, a directory with a slash at its end; one character a byte. Empty unless asked for. */
  readonly others: readonly string[];
  /** Why the commits made inside are not in it. */
  readonly complaint?: string;
}

/** Commits the jail's tree on top of a base, or of what was committed inside since, and packs it. */
export async function commitInJail(runJailedGit: RunJailedGit, plan: CommitPlan): Promise<JailedCommit> {
  const { base, sandboxGit } = plan;
  const jailed = jail(runJailedGit, base !== undefined, sandboxGit);
  // The files are added meanwhile.
  const looking =
    sandboxGit === undefined || base === undefined ? undefined : findSandboxHead(jailed, sandboxGit, base);
  looking?.catch(() => undefined);
  const story = async (): Promise<CommitDetails> => {
    const found = await looking;
    const parent = (typeof found === "object" ? found.sha : undefined) ?? plan.parent ?? base;
    return { parent, message: plan.message ?? snapshotMessage(plan.sandboxId) };
  };
  const { commit, nested, others } =
    (await commitChanged(jailed, plan, story)) ?? (await commitAll(jailed, plan, story));
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

/** What the commit of a snapshot says. */
export function snapshotMessage(sandboxId: string): string {
  return `Snapshot of sandbox ${sandboxId}`;
}

type Committed = Pick<JailedCommit, "commit" | "nested" | "others">;
type Story = () => Promise<CommitDetails>;

/** Commits the few paths that can differ; undefined where that does not suffice or does not work. */
async function commitChanged(jailed: Jailed, plan: CommitPlan, story: Story): Promise<Committed | undefined> {
  const { base, changedPaths, withOthers } = plan;
  if (base === undefined || changedPaths === undefined || withOthers === true) return undefined;
  try {
    return { ...(await commitPaths(jailed, changedPaths, base, await story())), others: [] };
  } catch (error) {
    if (toSandboxError(error).code !== "internal") throw error;
    return undefined;
  }
}

async function commitAll(jailed: Jailed, plan: CommitPlan, story: Story): Promise<Committed> {
  const { base } = plan;
  const unborn = (await addChanged(jailed, plan)) ?? (await addAnew(jailed, base));
  const [written, listed] = await Promise.all([
    must(jailed, ["write-tree"]),
    plan.withOthers === true ? listFiles(jailed) : undefined,
  ]);
  const { tree, changed } = await withLinksOfBase(jailed, base, hash(written), listed?.links);
  const others = listed === undefined ? [] : [...listed.others, ...[...listed.links.keys()].map((path) => `${path}/`)];
  const { parent, message } = await story();
  const onto = parent === undefined ? [] : ["-p", parent];
  const commit = hash(await must(jailed, ["commit-tree", ...onto, "-m", message, tree]));
  return { commit, nested: [...unborn, ...changed], others };
}

/** Adds what has changed to the index that the host made of the base; undefined when it is not one of the base any more. */
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

/** Makes the index one of the base, whatever it was, and adds everything. */
async function addAnew(jailed: Jailed, base: string | undefined): Promise<string[]> {
  const isMerged = base !== undefined && (await jailed(["read-tree", "-m", base])).exitCode === 0;
  if (!isMerged) await must(jailed, ["read-tree", base ?? "--empty"]);
  // Without this every unchanged file would be written as an object once more. Answers 1 when something has changed.
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
    // One character a byte: a file name need not be UTF-8, and must go back as it came.
    return { ...result, text: Buffer.from(result.stdout).toString("latin1") };
  };
}

/**
 * Makes a tree of the index, in which links to other repositories are as they are in the base: the commits they link to
 * would not come along. Gives the names of those that differed, too. `tree` is that of the index as it is, `known` all
 * links in it.
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

/** A link to another repository: the commit now, and that of the base if it was one there too. */
interface Link {
  readonly now: string;
  readonly before?: string;
}

/** What an ordinary commit leaves out: what is ignored, and what lies in other repositories, to which the index has links. */
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

/** The commit that is checked out inside, or why it cannot be built upon. */
async function findSandboxHead(jailed: Jailed, sandboxGit: string, base: string): Promise<SandboxHead | string> {
  const there = `--git-dir=${sandboxGit}`;
  const [answer, name] = await Promise.all([
    jailed([there, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"]),
    jailed([there, "symbolic-ref", "HEAD"]),
  ]);
  if (answer.exitCode !== 0) return "the git directory inside has no commit that can be read";
  const sha = hash(answer.text);
  const isAncestor = sha === base || (await jailed(["merge-base", "--is-ancestor", base, sha])).exitCode === 0;
  if (!isAncestor) return "they do not descend from the commit that the sandbox started from";
  const [, branch] = /^refs\/heads\/([^\n]+)\n$/.exec(name.text) ?? [];
  return isBranchName(branch) ? { sha, branch } : { sha };
}
