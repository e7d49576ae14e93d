import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { readCheckoutSettings } from "./git-directory.js";
import type { Repository } from "./repository.js";

/** What the settings of a repository say about how its files are stored. */
export interface PlainSettings {
  /** Whether line ends of files without attributes are changed. */
  readonly changesLineEnds: boolean;
}

/** Ways of storing refs or objects that are git's own business, and who may read them. */
const SPECIAL = /refstorage|partialclone|sharedrepository|worktreeconfig/i;
const known = new Map<string, { state: string; settings: PlainSettings | undefined }>();

/** Undefined where files are not stored as they are, or not in the plainest way. Asked of git once, and again when a configuration was written. */
export async function readPlainSettings(repository: Repository): Promise<PlainSettings | undefined> {
  const { gitDir } = repository;
  const state = stateOfConfiguration(gitDir);
  const before = known.get(gitDir);
  if (before !== undefined && before.state === state) return before.settings;
  const settings = await look(repository);
  known.set(gitDir, { state, settings });
  return settings;
}

async function look(repository: Repository): Promise<PlainSettings | undefined> {
  const text = await readFile(join(repository.gitDir, "config"), "utf8");
  const { autocrlf, ignorecase, precomposeunicode, symlinks, filemode } = await readCheckoutSettings(repository);
  const isPlain = ignorecase !== "true" && precomposeunicode !== "true" && symlinks !== "false" && filemode !== "false";
  if (!isPlain || SPECIAL.test(text)) return undefined;
  return { changesLineEnds: autocrlf === "true" || autocrlf === "input" };
}

function stateOfConfiguration(gitDir: string): string {
  const home = process.env["HOME"] ?? homedir();
  const shared = process.env["XDG_CONFIG_HOME"] ?? join(home, ".config");
  const paths = [join(gitDir, "config"), join(home, ".gitconfig"), join(shared, "git", "config"), "/etc/gitconfig"];
  return paths
    .map((path) => {
      const found = statSync(path, { bigint: true, throwIfNoEntry: false });
      return found === undefined ? path : `${path} ${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`;
    })
    .join("\n");
}
