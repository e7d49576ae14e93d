import { repositoryGit } from "../repository.js";
import type { TreeBase } from "../source.js";
import { parseTree, type TreeEntry } from "./git-object.js";

/** A directory of a commit. */
export interface BaseDirectory {
  /** By name, one character per byte. */
  readonly entries: ReadonlyMap<string, TreeEntry>;
  /** The content of its ignore file and its attributes file; empty when missing. One character per byte. */
  readonly ignore: string;
  readonly attributes: string;
}

const known = new WeakMap<TreeBase, Map<string, BaseDirectory>>();
const MAX_OUTPUT = 64 << 20;

/** Reads directories of the base by path, one character per byte; undefined when one is missing, or not as git writes it. */
export async function readBaseDirectories(
  base: TreeBase,
  wanted: ReadonlySet<string>,
): Promise<ReadonlyMap<string, BaseDirectory> | undefined> {
  const found = known.get(base) ?? new Map<string, BaseDirectory>();
  known.set(base, found);
  const missing = [...wanted].filter((path) => !found.has(path));
  if (missing.some((path) => path.includes("\n"))) return undefined;
  if (missing.length > 0) {
    const names = missing.flatMap((path) => [path, at(path, ".gitignore"), at(path, ".gitattributes")]);
    const answers = await readObjects(base, names);
    for (const [n, path] of missing.entries()) {
      const [tree, ignore, attributes] = answers.slice(3 * n, 3 * n + 3);
      const entries = tree?.type === "tree" ? parseTree(tree.content, base.repository.objectFormat) : undefined;
      if (entries === undefined) return undefined;
      const byName = new Map(entries.map((entry) => [entry.name, entry]));
      found.set(path, { entries: byName, ignore: textOf(ignore), attributes: textOf(attributes) });
    }
  }
  return found;
}

/** A path below a directory. */
export function at(directory: string, name: string): string {
  return directory === "" ? name : `${directory}/${name}`;
}

interface ReadObject {
  readonly type: string;
  readonly content: Buffer;
}

/** Reads the objects at paths of the base with one git; undefined for a missing one. */
async function readObjects(base: TreeBase, paths: readonly string[]): Promise<(ReadObject | undefined)[]> {
  const text = paths.map((path) => `${base.sha}:${path}\n`).join("");
  const how = { interruptible: true, maxOutput: MAX_OUTPUT, text, isBinary: true };
  const answer = Buffer.from(await repositoryGit(["cat-file", "--batch"], base.repository.gitDir, how), "latin1");
  let place = 0;
  return paths.map(() => {
    const end = answer.indexOf(0x0a, place);
    const [, type = "", size] = /^[0-9a-f]+ ([a-z]+) (\d+)$/.exec(answer.toString("latin1", place, end)) ?? [];
    place = end + 1;
    if (size === undefined) return undefined;
    const content = answer.subarray(place, place + Number(size));
    place += Number(size) + 1;
    return { type, content };
  });
}

function textOf(object: ReadObject | undefined): string {
  return object?.type === "blob" ? object.content.toString("latin1") : "";
}
