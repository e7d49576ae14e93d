import { statSync } from "node:fs";
import { join } from "node:path";
/** Remembers what git said of directories. */
export interface RepositoryMemory<T> {
  /** What git said of a directory before, while what it said it by is as it was. */
  recall(directory: string): T | undefined;
  /** Remembers what git says of a directory, once it does; asks it. */
  ask(directory: string, git: () => Promise<T>): Promise<T>;
}

/**
 * A memory for as long as nothing of what git goes by has changed: whose the directories are, and the configuration. Only for the plain case of
 * a repository with its git directory in it, which no other file redirects.
 */
export function createRepositoryMemory<T extends { gitDir: string; topLevel?: string }>(): RepositoryMemory<T> {
  const known = new Map<string, { state: string; said: T }>();
  return {
    recall(directory) {
      const found = known.get(directory);
      return found !== undefined && found.state === stateOf(directory) ? found.said : undefined;
    },
    async ask(directory, git) {
      const state = stateOf(directory);
      const said = await git();
      const isPlain = said.gitDir === join(directory, ".git") && said.topLevel === directory;
      if (state !== undefined && isPlain) known.set(directory, { state, said });
      return said;
    },
  };
}

/** Everything that can be seen of what git goes by; undefined when it goes by more than that. */
function stateOf(directory: string): string | undefined {
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
