import { statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { runHostGit } from "./host-git.js";
import { inRepository, type Repository } from "./repository.js";

const SAFE_SETTING =
  /^core\.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode)\n(true|false|input|lf|crlf|native)$/;
const INCLUDE = /^include(if)?\./;
const known = new Map<string, { state: string; settings: Record<string, string> }>();

/**
 * What the user's settings say about how files are written, and nothing that could be a secret or a program. Asked of git once, and again
 * when a configuration was written; each time where one includes others.
 */
export async function readCheckoutSettings(repository: Repository): Promise<Readonly<Record<string, string>>> {
  const { gitDir } = repository;
  const state = stateOfConfiguration(gitDir);
  const before = known.get(gitDir);
  if (before?.state === state) return before.settings;
  const query = ["config", "--null", "--get-regexp", "^(core|include|includeif)\\."];
  const entries = (await runHostGit(query, inRepository(gitDir))).stdout.split("\0");
  const settings: Record<string, string> = {};
  for (const entry of entries) {
    const [, key, value] = SAFE_SETTING.exec(entry) ?? [];
    if (key !== undefined && value !== undefined) settings[key] = value;
  }
  if (entries.some((entry) => INCLUDE.test(entry))) known.delete(gitDir);
  else known.set(gitDir, { state, settings });
  return settings;
}

function stateOfConfiguration(gitDir: string): string {
  const home = process.env["HOME"] ?? homedir();
  const shared = process.env["XDG_CONFIG_HOME"] ?? join(home, ".config");
  const own = ["config", "config.worktree"].map((name) => join(gitDir, name));
  const paths = [...own, join(home, ".gitconfig"), join(shared, "git", "config"), "/etc/gitconfig"];
  return paths
    .map((path) => {
      const found = statSync(path, { bigint: true, throwIfNoEntry: false });
      return found === undefined ? path : `${path} ${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`;
    })
    .join("\n");
}
