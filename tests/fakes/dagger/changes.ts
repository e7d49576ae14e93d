import { spawn } from "node:child_process";
import { once } from "node:events";
import { lstatSync, readdirSync, readlinkSync, rmSync, type Stats } from "node:fs";
import { join } from "node:path";

/** What became of one tree, as an engine tells it: a directory that went is named with a slash, without what was in it. */
export interface TreeChanges {
  /** Created or modified, parents before what is in them. */
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/** Compares two trees by what a look without reading them shows. */
export function compareTrees(before: string, after: string): TreeChanges {
  const changed: string[] = [];
  const removed: string[] = [];
  const visit = (at: string): void => {
    const old = new Set(namesIn(join(before, at)));
    for (const name of namesIn(join(after, at))) {
      const path = join(at, name);
      const now = lstatSync(join(after, path));
      if (!old.delete(name) || !isSame(join(before, path), join(after, path), now)) changed.push(path);
      if (!now.isDirectory() && isDirectory(join(before, path))) removed.push(`${path}/`);
      if (now.isDirectory()) visit(path);
    }
    for (const name of old) {
      const path = join(at, name);
      removed.push(lstatSync(join(before, path)).isDirectory() ? `${path}/` : path);
    }
  };
  visit("/");
  return { changed, removed };
}

function namesIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

function isDirectory(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function isSame(before: string, after: string, now: Stats): boolean {
  const then = lstatSync(before);
  if (then.mode !== now.mode || then.uid !== now.uid || then.gid !== now.gid) return false;
  if (now.isSymbolicLink()) return readlinkSync(before) === readlinkSync(after);
  return now.isDirectory() || (then.size === now.size && then.mtimeMs === now.mtimeMs);
}

/** Copies some paths of a tree, and nothing that is below them. */
export async function copyPaths(from: string, paths: readonly string[], to: string): Promise<void> {
  const names = paths.map((path) => `.${path}\0`).join("");
  await run("tar", ["-C", from, "-cf", `${to}.tar`, "--no-recursion", "--null", "-T", "-"], names);
  await unpack(`${to}.tar`, to);
}

/** Packs a tree into one file. */
export async function pack(tree: string, file: string): Promise<void> {
  await run("tar", ["-C", tree, "-cf", file, "."]);
}

/** Unpacks such a file over a tree. */
export async function unpack(file: string, tree: string): Promise<void> {
  await run("tar", ["-C", tree, "-xpf", file]);
}

/** Copies one tree over another one; what is of another kind there gives way. */
export async function overlay(from: string, to: string): Promise<void> {
  const clear = (at: string): void => {
    for (const entry of readdirSync(join(from, at), { withFileTypes: true })) {
      const path = join(at, entry.name);
      const there = lstatSync(join(to, path), { throwIfNoEntry: false });
      if (there === undefined) continue;
      if (there.isDirectory() && entry.isDirectory()) clear(path);
      else rmSync(join(to, path), { recursive: true });
    }
  };
  clear("");
  await run("cp", ["-a", `${from}/.`, to]);
}

async function run(program: string, args: readonly string[], stdin = ""): Promise<void> {
  const child = spawn(program, args, { stdio: ["pipe", "ignore", "pipe"] });
  let complaint = "";
  child.stderr.on("data", (chunk: Buffer) => {
    complaint += chunk;
  });
  child.stdin.on("error", () => undefined);
  child.stdin.end(stdin);
  const [code] = (await once(child, "close")) as [number];
  if (code !== 0) throw new Error(`${program} failed: ${complaint}`);
}
