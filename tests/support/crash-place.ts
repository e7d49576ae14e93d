import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type Child, startChild } from "./compiled.js";
import { processesWith } from "./processes.js";
import { createRepository, git } from "./scratch.js";
import { treeDigest } from "./tree-digest.js";

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

/** Lays out a place, as a copy of a repository that is made only once. */
export function createCrashPlace(path: string, compiled: string): CrashPlace {
  const template = join(path, "..", "template");
  if (!existsSync(template)) createRepository(template);
  const repo = join(path, "repo");
  for (const name of ["tmp", "home"]) mkdirSync(join(path, name), { recursive: true });
  cpSync(template, repo, { recursive: true });
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
 * Everything that a sandbox could leave behind at a place. What is acknowledged does not count, but must be whole.
 * `ids` are the sandboxes that were there, for their control groups.
 */
export function takeCensus(place: CrashPlace, ids: readonly string[], acknowledged: readonly Acknowledged[]): unknown {
  const { path, repo, marker } = place;
  const known = acknowledged.map((each) => checkSnapshot(place, each));
  const isKnown = (name: string): boolean => known.some((each) => name.includes(each.id) || name.includes(each.ref));
  const lines = (text: string): string[] => text.split("\n").filter(Boolean);
  const gitFiles = lines(execFileSync("find", [join(repo, ".git"), "-type", "f"]).toString());
  return {
    processes: processesWith(marker).map(({ argv }) => argv.join(" ").slice(0, 200)),
    mounts: lines(readFileSync("/proc/self/mountinfo", "utf8")).filter((line) => line.includes(path)),
    groups: ids
      .flatMap((id) => CONTROLLERS.map((name) => join("/sys/fs/cgroup", name, "glovebox", id)))
      .filter(existsSync),
    temporary: readdirSync(join(path, "tmp")),
    home: lines(execFileSync("find", [join(path, "home"), "-type", "f"]).toString()).filter((name) => !isKnown(name)),
    sandboxes: place.sandboxes(),
    refs: lines(git(repo, "for-each-ref")).filter((line) => !isKnown(line)),
    worktrees: lines(git(repo, "worktree", "list")).length,
    left: gitFiles.filter((name) => /\.lock$|\/worktrees\//.test(name)),
    head: readFileSync(join(repo, ".git", "HEAD"), "utf8"),
    config: readFileSync(join(repo, ".git", "config"), "utf8"),
    hooks: treeDigest(join(repo, ".git", "hooks")),
    status: git(repo, "status", "--porcelain"),
    fsck: git(repo, "fsck", "--full", "--strict", "--no-dangling", "--no-progress"),
  };
}

/** Throws unless the snapshot can be found under its id, with its tracked and its ignored files. */
function checkSnapshot(
  { path, repo }: CrashPlace,
  { acknowledged: id, content }: Acknowledged,
): { id: string; ref: string } {
  const record = JSON.parse(readFileSync(join(path, "home", "snapshots", `${id}.json`), "utf8")) as Record<
    string,
    string
  >;
  const { ref = "", commit = "", archive = "" } = record;
  const saved = git(repo, "cat-file", "blob", `${ref}:state.txt`);
  const aside = execFileSync("tar", ["-xOf", archive, "ignored/state.txt"]).toString();
  if (git(repo, "rev-parse", ref) === commit && saved === content && aside === content) return { id, ref };
  throw new Error(`snapshot ${id} is damaged: ${saved}, ${aside} instead of ${content}`);
}

function entries(path: string): string[] {
  return existsSync(path) ? readdirSync(path) : [];
}
