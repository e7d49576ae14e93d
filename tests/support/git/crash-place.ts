import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { processesWith } from "../processes/host-processes.js";
import { filesBelow } from "../processes/token-watch.js";
import { type Child, startChild } from "../run/compiled.js";
import { madeForRun } from "../run/made-for-run.js";
import { createRepository, gitEach } from "../scratch.js";
import { treeDigest } from "../tree-digest.js";

/** A repository, a home and a directory for temporary files that processes of a test share and nobody else uses. */
export interface CrashPlace {
  readonly path: string;
  readonly repo: string;
  /** In an argument of every process that works here. */
  readonly marker: string;
  readonly env: Readonly<Record<string, string>>;
  /** Starts a program of `tests/children` here. */
  start(name: string, args: string[], env?: Record<string, string>): Child;
  /** Ids of the sandboxes that the ledger knows. */
  sandboxes(): string[];
}

/** A snapshot whose id its caller was told. */
export interface Acknowledged {
  acknowledged: string;
  content: string;
}

const CONTROLLERS = ["", "memory", "cpu", "pids", "unified"];

/**
 * Lays out a place, as a copy of a repository that is made only once. `etc` is a directory for what is prepared as the `/etc`
 * of all sandboxes, if other places use it, too.
 */
export function createCrashPlace(path: string, compiled: string, etc?: string): CrashPlace {
  const template = madeForRun("crash-template", (folder) => void createRepository(folder));
  const repo = join(path, "repo");
  for (const name of ["tmp", "home"]) mkdirSync(join(path, name), { recursive: true });
  cpSync(template, repo, { recursive: true });
  if (etc !== undefined) symlinkSync(etc, join(path, "home", "etc"));
  const env = { GLOVEBOX_HOME: join(path, "home"), TMPDIR: join(path, "tmp") };
  return {
    path,
    repo,
    env,
    marker: basename(path),
    start: (name, args, more = {}) => startChild(compiled, name, args, { ...env, ...more }),
    sandboxes: () => entries(join(path, "home", "sandboxes")),
  };
}

/**
 * Everything that a sandbox could leave behind at a place. Snapshots do not count, but must be whole, and none that is
 * acknowledged may be missing. `ids` are the sandboxes that were there, for their control groups.
 */
export function takeCensus(place: CrashPlace, ids: readonly string[], acknowledged: readonly Acknowledged[]): unknown {
  const { path, repo, marker } = place;
  const [refs = "", worktrees = "", status, fsck] = gitEach(
    repo,
    ["for-each-ref"],
    ["worktree", "list"],
    ["status", "--porcelain"],
    ["fsck", "--full", "--strict", "--no-dangling", "--no-progress"],
  );
  const records = entries(join(path, "home", "snapshots")).filter((name) => name.endsWith(".json"));
  const known = records.map((name) => checkSnapshot(place, name));
  /** Made once for all sandboxes, and whole. */
  const isShared = (name: string): boolean =>
    /\/home\/(?:(?:etc|views)\/[0-9a-f]{32}\/|etc\/\.(?:path|link)-)/.test(name);
  const isKnown = (name: string): boolean =>
    isShared(name) || known.some((each) => name.includes(each.id) || name.includes(each.ref));
  const lines = (text: string): string[] => text.split("\n").filter(Boolean);
  return {
    lost: acknowledged.filter(
      ({ acknowledged: id, content }) => known.find((each) => each.id === id)?.content !== content,
    ),
    processes: processesWith(marker).map(({ argv }) => argv.join(" ").slice(0, 200)),
    mounts: lines(readFileSync("/proc/self/mountinfo", "utf8")).filter((line) => line.includes(path)),
    groups: ids
      .flatMap((id) => CONTROLLERS.map((name) => join("/sys/fs/cgroup", name, "glovebox", id)))
      .filter(existsSync),
    temporary: readdirSync(join(path, "tmp")),
    home: filesBelow(join(path, "home")).filter((name) => !isKnown(name)),
    sandboxes: place.sandboxes(),
    refs: lines(refs).filter((line) => !isKnown(line)),
    worktrees: lines(worktrees).length,
    left: filesBelow(join(repo, ".git")).filter((name) => /\.lock$|\/worktrees\/|\.git\/glovebox-/.test(name)),
    head: readFileSync(join(repo, ".git", "HEAD"), "utf8"),
    config: readFileSync(join(repo, ".git", "config"), "utf8"),
    hooks: treeDigest(join(repo, ".git", "hooks")),
    status,
    fsck,
  };
}

/** What a snapshot holds. Throws unless its tracked and its ignored file are both there, and the same. */
function checkSnapshot({ path, repo }: CrashPlace, name: string): { id: string; ref: string; content: string } {
  const record = JSON.parse(readFileSync(join(path, "home", "snapshots", name), "utf8")) as Record<string, string>;
  const { id = "", ref = "", commit = "", archive = "" } = record;
  const [content = "", sha] = gitEach(repo, ["cat-file", "blob", `${ref}:state.txt`], ["rev-parse", ref]);
  const isAlone = content.startsWith("plain") && archive === "";
  const aside = isAlone ? content : execFileSync("tar", ["-xOf", archive, "ignored/state.txt"]).toString();
  if (sha === commit && content === aside) return { id, ref, content };
  throw new Error(`snapshot ${id} is damaged: ${content}, ${aside}`);
}

function entries(path: string): string[] {
  return existsSync(path) ? readdirSync(path) : [];
}
