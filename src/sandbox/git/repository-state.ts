import { statSync } from "node:fs";
import { join } from "node:path";

/**
 * Everything that can be seen of what git goes by when it says what a repository is: whose the directories are, and the configuration.
 * Undefined when it goes by more than that: only the plain case of a git directory in its repository, which no other file redirects.
 */
export function repositoryState(directory: string): string | undefined {
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
