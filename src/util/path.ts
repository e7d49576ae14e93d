import { posix } from "node:path";
import { codedError } from "./coded-error.js";

/**
 * Resolves `target` against `base` and returns the absolute path, or throws `path_confinement` if it leads outside.
 * Lexical only: the caller must still confine symbolic links when it opens the path.
 */
export function assertPathConfined(target: string, base: string): string {
  const root = toRoot(base);
  const resolved = posix.resolve(root, checkText(target, "path"));
  if (isBeneath(resolved, root)) return resolved;
  throw codedError("path_confinement", `path confinement violation: ${target} is outside base directory`);
}

/** Whether `target`, resolved against `base`, stays inside it. */
export function isPathConfined(target: string, base: string): boolean {
  const root = toRoot(base);
  if (typeof target !== "string" || target.includes("\0")) return false;
  return isBeneath(posix.resolve(root, target), root);
}

function toRoot(base: string): string {
  if (!posix.isAbsolute(checkText(base, "base directory"))) {
    throw codedError("invalid_path", `base directory must be absolute, got ${JSON.stringify(base)}`);
  }
  return posix.resolve(base);
}

function isBeneath(path: string, root: string): boolean {
  return path === root || path.startsWith(root === "/" ? root : `${root}/`);
}

function checkText(value: string, what: string): string {
  if (typeof value !== "string") throw new TypeError(`${what} must be a string, got ${typeof value}`);
  if (value.includes("\0")) throw codedError("invalid_path", `${what} contains a NUL byte: ${JSON.stringify(value)}`);
  return value;
}
