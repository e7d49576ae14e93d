import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes a directory and what is missing above it, and gives back the first that it made. Node's own `recursive` never comes
 * back, and cannot be interrupted, where a directory that is there takes no new one and says ENOENT: /proc, automounts.
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
