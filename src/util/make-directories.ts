import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes a directory and its missing parents, and returns the first one it made. Node's own `recursive` loops forever, and
 * can't be interrupted, below directories that answer mkdir with ENOENT, as /proc and automounts do.
 */
export function makeDirectories(path: string, mode = 0o777): string | undefined {
  try {
    return make(path, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    const first = makeDirectories(dirname(path), mode);
    return [first, make(path, mode)].find((made) => made !== undefined);
  }
}

function make(path: string, mode: number): string | undefined {
  try {
    mkdirSync(path, { mode });
    return path;
  } catch (error) {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return undefined;
    throw error;
  }
}
