import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Whether a path lies in a repository that came from elsewhere: one with a remote. A linked worktree counts too. What
 * others wrote there is not what the user of this machine wrote.
 */
export function isInClone(path: string): boolean {
  for (let at = dirname(realpathSync(path)); ; at = dirname(at)) {
    const found = statSync(join(at, ".git"), { throwIfNoEntry: false });
    if (found?.isFile()) return true;
    if (found?.isDirectory()) return hasRemote(join(at, ".git", "config"));
    if (dirname(at) === at) return false;
  }
}

function hasRemote(config: string): boolean {
  try {
    return /^\s*\[\s*remote\b/im.test(readFileSync(config, "utf8"));
  } catch {
    return true; // what cannot be read says nothing that could be relied on
  }
}
