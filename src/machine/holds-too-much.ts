import { realpathSync } from "node:fs";
import { gloveboxHome } from "./home.js";
import { isWithin, systemFolderAround } from "./system-folders.js";
import { userHome } from "./user-home.js";

/** Why a directory, given by its real path, is no place to work in: a sandbox would reach far more than a project. */
export function holdsTooMuch(real: string): string | undefined {
  if (real === "/") return "it is the whole file system";
  for (const home of bothPaths(userHome())) {
    if (isWithin(home, real)) return real === home ? "it is the home directory" : "it contains the home directory";
  }
  for (const state of bothPaths(gloveboxHome())) {
    if (isWithin(state, real) || isWithin(real, state)) return "it contains Glovebox's own records";
  }
  const system = systemFolderAround(real);
  return system === undefined ? undefined : `it is part of the system (${system})`;
}

/** A path as it is given, and without links. */
function bothPaths(path: string): string[] {
  try {
    return [path, realpathSync(path)];
  } catch {
    return [path];
  }
}
