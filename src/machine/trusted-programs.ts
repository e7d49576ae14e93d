import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { isWithin, realPathOf } from "../util/repository-of.js";

const SYSTEM_DIRECTORIES = ["/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin"];

/**
 * The directories of a PATH without those that others may have put there: relative ones, ones below the current one, `node_modules/.bin`, and ones
 * that lead into the repository.
 */
export function trustedDirectories(path: string, repository?: string, current: string = process.cwd()): string[] {
  return path.split(delimiter).filter((directory) => {
    if (!isAbsolute(directory) || leadsInto(directory, repository)) return false;
    if (SYSTEM_DIRECTORIES.includes(directory)) return true;
    return !isWithin(directory, current) && !directory.includes(join("node_modules", ".bin"));
  });
}

/** The first program of this name in these directories that does not lie in the repository. */
export function findProgram(name: string, directories: readonly string[], repository?: string): string | undefined {
  const found = directories.map((directory) => join(directory, name)).find(isProgram);
  return found === undefined || leadsInto(found, repository) ? undefined : found;
}

/** Whether this is a file that can be run. */
export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function leadsInto(path: string, repository: string | undefined): boolean {
  return repository !== undefined && isWithin(realPathOf(path), realPathOf(repository));
}
