import { statSync } from "node:fs";
import { join } from "node:path";
import type { Repository } from "./repository.js";

const known = new Map<string, { state: string; repository: Repository }>();

/**
 * What git said of a directory before, while what it said it by is as it was: whose the directories are, and the configuration. Only for the
 * plain case of a repository with its git directory in it, which no other file redirects.
 */
export function recallRepository(directory: string): Repository | undefined {
  const found = known.get(directory);
  return found !== undefined && found.state === stateOf(directory) ? found.repository : undefined;
}

/** Remembers what git said of a directory; `state` is that from before git was asked. */
export function rememberRepository(directory: string, state: string | undefined, repository: Repository): void {
  if (state === undefined || repository.gitDir !== join(directory, ".git") || repository.topLevel !== directory) return;
  known.set(directory, { state, repository });
}

/** Everything that can be seen of what git goes by; undefined when it goes by more than that. */
export function stateOf(directory: string): string | undefined {
  const gitDir = join(directory, ".git");
  const seen = (path: string): Record<"dev" | "ino" | "uid" | "size" | "mtimeNs" | "ctimeNs", bigint> | undefined =>
    statSync(path, { bigint: true, throwIfNoEntry: false });
  try {
    const [place, inner, config] = [seen(directory), seen(gitDir), seen(join(gitDir, "config"))];
    if (!place || !inner || !config) return undefined;
    if (["commondir", "config.worktree"].some((name) => seen(join(gitDir, name)) !== undefined)) return undefined;
    return [
      ...[place, inner, config].flatMap(({ dev, ino, uid }) => [dev, ino, uid]),
      ...[config.size, config.mtimeNs, config.ctimeNs],
      ...["HOME", "XDG_CONFIG_HOME"].map((name) => process.env[name] ?? ""),
    ].join(" ");
  } catch {
    return undefined;
  }
}
