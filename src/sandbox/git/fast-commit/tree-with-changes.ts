import type { Repository } from "../repository.js";
import type { BaseDirectory } from "./base-directories.js";
import type { Gathered } from "./gather-changes.js";
import { DIRECTORY, type GitObject, gitObject, type TreeEntry, treeObject } from "./git-object.js";

const GITLINK = "160000";

/** The directories that a path is in, the top one first. */
export function directoriesOf(path: string): string[] {
  const names = path.split("/");
  return names.map((_, n) => names.slice(0, n).join("/"));
}

/** Whether a path is one of the given ones, or below one. */
export function isReplaced(path: string, named: ReadonlySet<string>): boolean {
  return [...directoriesOf(path), path].some((each) => named.has(each));
}

/**
 * Makes the tree of a base with the changes. Returns it, the objects that the base doesn't have at the same paths, and these paths. Undefined
 * when a submodule is among the changes, or a directory is left without a file.
 */
export function treeWithChanges(
  base: ReadonlyMap<string, BaseDirectory>,
  { paths, files }: Gathered,
  format: Repository["objectFormat"],
): { tree: string; objects: GitObject[]; changed: Set<string> } | undefined {
  const named = new Set(paths);
  const places = new Set([...paths, ...files.map(({ path }) => path)].flatMap(directoriesOf));
  const directories = new Map<string, Map<string, TreeEntry>>();
  for (const place of places) {
    directories.set(place, new Map(isReplaced(place, named) ? [] : base.get(place)?.entries));
  }
  for (const path of paths) {
    const [parent, name] = splitPath(path);
    const isNested = directoriesOf(path).some((each) => named.has(each));
    if (isNested || base.get(parent)?.entries.get(name)?.mode === GITLINK) return undefined;
    directories.get(parent)?.delete(name);
  }
  const objects = new Map<string, GitObject>();
  const changed = new Set<string>();
  const put = (path: string, mode: string, object: GitObject): void => {
    const [parent, name] = splitPath(path);
    directories.get(parent)?.set(name, { mode, name, id: object.id });
    if (base.get(parent)?.entries.get(name)?.id === object.id) return;
    objects.set(object.id, object);
    changed.add(path);
  };
  for (const { path, mode, content } of files) put(path, mode, gitObject("blob", content, format));
  const deepestFirst = [...places].filter(Boolean).sort((a, b) => directoriesOf(b).length - directoriesOf(a).length);
  for (const place of deepestFirst) {
    const entries = [...(directories.get(place)?.values() ?? [])];
    if (entries.length === 0) return undefined;
    put(place, DIRECTORY, treeObject(entries, format));
  }
  const top = treeObject([...(directories.get("")?.values() ?? base.get("")?.entries.values() ?? [])], format);
  objects.set(top.id, top);
  return { tree: top.id, objects: [...objects.values()], changed };
}

/** The directory of a path, and its name there. */
export function splitPath(path: string): [parent: string, name: string] {
  const slash = path.lastIndexOf("/");
  return [slash === -1 ? "" : path.slice(0, slash), path.slice(slash + 1)];
}
