import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";

/** As many as the kernel follows. */
const MOST_LINKS = 40;

/**
 * The top of the repository that a file comes from; undefined when it comes from none. Others may have written whatever
 * lies in a git work tree or below a `.glovebox`, so the path as it is named, the path that it really is, and every link on
 * the way between them count. `project` is a directory that counts as a repository whatever is in it.
 */
export function repositoryOf(path: string, project?: string): string | undefined {
  const named = resolve(path);
  const places = [realPathOf(named), named, ...linksTo(named)];
  return places.map(topAbove).find((top) => top !== undefined) ?? projectOf(places, project);
}

/** A path without links; as it is where nothing is there. */
export function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

/** Whether a path is a directory or below it. */
export function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep);
}

/** The links that a path goes through, each by its own path. */
function linksTo(path: string): string[] {
  const links: string[] = [];
  let at = "/";
  let names = namesIn(path);
  for (let name = names.shift(); name !== undefined && links.length < MOST_LINKS; name = names.shift()) {
    const next = join(at, name);
    if (lstatSync(next, { throwIfNoEntry: false })?.isSymbolicLink() !== true) {
      at = next;
      continue;
    }
    links.push(next);
    names = [...namesIn(resolve(at, readlinkSync(next))), ...names];
    at = "/";
  }
  return links;
}

function namesIn(path: string): string[] {
  return path.split(sep).filter((name) => name !== "");
}

function topAbove(path: string): string | undefined {
  for (let at = dirname(path); ; at = dirname(at)) {
    if (lstatSync(join(at, ".git"), { throwIfNoEntry: false }) !== undefined) return at;
    if (dirname(at) === at) return projectAbove(path);
  }
}

function projectAbove(path: string): string | undefined {
  for (let at = dirname(path); dirname(at) !== at; at = dirname(at)) {
    if (basename(at) === ".glovebox") return dirname(at);
  }
  return undefined;
}

function projectOf(paths: readonly string[], project: string | undefined): string | undefined {
  if (project === undefined) return undefined;
  const places = [realPathOf(project), resolve(project)];
  return places.find((place) => paths.some((path) => isWithin(path, place)));
}
