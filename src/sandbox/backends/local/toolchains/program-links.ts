import { existsSync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { isProgram } from "../../../../machine/trusted-programs.js";

/** The npm package, or the version of a program, that a path is in. */
const WHOLE = [/^.*?\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/, /^.*?\/versions\/[^/]+(?=\/)/];

/**
 * What installers put elsewhere in `~/.local`, `~/.npm-global` or the like, and linked to from its `bin`: the paths to show, so that the links work. A
 * program that is known to need the files beside it comes with them; of any other, only the file is shown.
 */
export function findLinkedPrograms(directory: string, home: string, isShowable: (path: string) => boolean): string[] {
  const place = dirname(directory);
  // Only installers use hidden folders: in any other one somebody may work.
  if (basename(directory) !== "bin" || dirname(place) !== home || !basename(place).startsWith(".")) return [];
  const found = new Set<string>();
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const link = join(directory, entry.name);
    if (!entry.isSymbolicLink() || !isProgram(link)) continue;
    const target = resolve(realpathSync(directory), readlinkSync(link));
    for (const path of shownFor(target, isShowable)) {
      if (isBelow(realpathSync(path), realpathSync(place))) found.add(path);
    }
  }
  return [...found];
}

function shownFor(target: string, isShowable: (path: string) => boolean): string[] {
  const environment = dirname(dirname(target));
  if (existsSync(join(environment, "pyvenv.cfg")) && isWhole(environment, target, isShowable))
    return [environment, ...interpreterOf(environment)];
  const whole = wholeOf(target) ?? placeOf(wholeOf(realpathSync(target)), target);
  return [whole !== undefined && isWhole(whole, target, isShowable) ? whole : target];
}

function wholeOf(path: string): string | undefined {
  return WHOLE.map((pattern) => pattern.exec(path)?.[0]).find((found) => found !== undefined);
}

/** By what name a program is reached in its directory, which may be a link itself: `current` for `versions/2.0`. */
function placeOf(directory: string | undefined, target: string): string | undefined {
  if (directory === undefined) return undefined;
  for (let path = dirname(target); path !== "/"; path = dirname(path))
    if (realpathSync(path) === directory) return path;
  return undefined;
}

/** Whether a directory has the program itself and no sign of anything else. */
function isWhole(directory: string, target: string, isShowable: (path: string) => boolean): boolean {
  return isBelow(realpathSync(target), realpathSync(directory)) && isShowable(realpathSync(directory));
}

/** The Python of a virtual environment, if it was installed below the home as well. */
function interpreterOf(environment: string): string[] {
  const python = join(environment, "bin", "python");
  if (!isProgram(python)) return [];
  let path = python;
  for (let step = 0; step < 8 && dirname(path) === dirname(python); step++) {
    try {
      path = resolve(dirname(path), readlinkSync(path));
    } catch {
      return []; // it is a program of its own
    }
  }
  return path.startsWith("/usr/") ? [] : [dirname(dirname(path))];
}

function isBelow(path: string, directory: string): boolean {
  const way = relative(directory, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`);
}
