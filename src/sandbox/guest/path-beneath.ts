import type { StartSpec } from "../types.js";
import { ESCAPES, errorFor } from "./failure.js";

/** A path as seen from a directory above it; `path_confinement` if it is elsewhere. */
export function pathBeneath(directory: string, path: string): string {
  if (path === directory) return "";
  const start = directory === "/" ? directory : `${directory}/`;
  if (path.startsWith(start)) return path.slice(start.length);
  throw errorFor(ESCAPES, path);
}

/** Where the guest starts a command: a path beneath its root, or an absolute one that the command enters by itself. */
export function cwdFor(workDir: string, { cwd, anywhere }: Pick<StartSpec, "cwd" | "anywhere">): string {
  return anywhere === true && cwd !== workDir ? cwd : pathBeneath(workDir, cwd);
}
