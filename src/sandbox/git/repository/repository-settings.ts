import { statSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import { gloveboxHome } from "../../../machine/home.js";
import { userHome } from "../../../machine/user-home.js";
import { gitError, type HostGitOptions, runHostGit } from "../host.js";
import type { GitConfig } from "./git-directory.js";
import { readUntrustedFile } from "./untrusted-file.js";

/** The settings of a repository that count: none that names a program, a place on this machine or another file. */
export interface RepositorySettings {
  readonly objectFormat: "sha1" | "sha256";
  readonly refStorage: "files" | "reftable";
  /** Whether objects may be missing, for git to fetch on demand. Glovebox never fetches them. */
  readonly isPartial: boolean;
  /** Undefined if not set. */
  readonly isBare?: boolean | undefined;
  /** Settings of `core` that decide how files are written. */
  readonly core: Readonly<Record<string, string>>;
  /** Settings of `core` that decide who may read what git writes, and whether git writes reflogs. */
  readonly sharing: Readonly<Record<string, string>>;
  /** The value of `core.worktree`. Only compared, never followed. */
  readonly workTree?: string | undefined;
  /** The URL of `origin`. */
  readonly originUrl?: string | undefined;
}

const SAFE_SETTING =
  /^core\.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode)\n(true|false|input|lf|crlf|native)$/;
const SHARING = /^core\.(sharedrepository|logallrefupdates)\n([a-z]{1,10}|0?[0-7]{3})$/;
const INCLUDE = /^include(if)?\./;
const KNOWN_EXTENSIONS = new Set([
  "objectformat",
  "refstorage",
  "worktreeconfig",
  "relativeworktrees",
  "noop",
  "noop-v1",
]);
const MAX_CONFIG = 1 << 20;
const DAMAGED_CONFIG = "The repository's .git/config is damaged. git config --list --show-origin names the line";
const ofRepositories = createMemory<RepositorySettings>();
const ofUser = createMemory<Readonly<Record<string, string>>>();

/** Reads a repository's own configuration, without includes. Remembers it until the file changes. */
export async function readRepositorySettings(gitDir: string): Promise<RepositorySettings> {
  const paths = ["config", "config.worktree"].map((name) => join(gitDir, name));
  return await ofRepositories(gitDir, stateOf(paths), async () => {
    const own = await listSettings(join(gitDir, "config"));
    const hasMore = lastOf(own, "extensions.worktreeconfig") === "true";
    const all = hasMore ? [...own, ...(await listSettings(join(gitDir, "config.worktree")))] : own;
    return { value: toSettings(gitDir, all), isLasting: true };
  });
}

/** Reads how the user's configuration wants files written. Remembers it until a file changes, unless it has includes. */
export async function readUserSettings(): Promise<Readonly<Record<string, string>>> {
  const home = process.env["HOME"] ?? userHome();
  const shared = process.env["XDG_CONFIG_HOME"] ?? join(home, ".config");
  const paths = [join(home, ".gitconfig"), join(shared, "git", "config"), "/etc/gitconfig"];
  return await ofUser("", stateOf(paths), async () => {
    const query = ["config", "--null", "--get-regexp", "^(core|include|includeif)\\."];
    const entries = (await runHostGit(query, nowhere())).stdout.split("\0");
    return { value: settingsOf(entries, SAFE_SETTING), isLasting: !entries.some((entry) => INCLUDE.test(entry)) };
  });
}

/** How user and repository want files written: a few words of a known list, nothing that could be a secret, a path or a program. */
export async function readCheckoutSettings({ gitDir }: { gitDir: string }): Promise<Readonly<Record<string, string>>> {
  const [user, own] = await Promise.all([readUserSettings(), readRepositorySettings(gitDir)]);
  return { ...user, ...own.core };
}

/** The settings of a filter in the user's configuration; empty when it is not defined there. */
export async function readUserFilter(name: string): Promise<Readonly<Record<string, string>>> {
  const entries = (await runHostGit(["config", "--null", "--get-regexp", "^filter\\."], nowhere())).stdout.split("\0");
  const prefix = `filter.${name}.`;
  const own = entries.map(split).filter(([key, value]) => key.startsWith(prefix) && value !== undefined);
  return Object.fromEntries(own) as Record<string, string>;
}

/** Outside of any repository, so that git doesn't search for one. */
function nowhere(): HostGitOptions {
  return { cwd: gloveboxHome(), env: { GIT_DIR: "/nonexistent" } };
}

/** The given filters, as sections of a configuration for a git in a sandbox or a jail. */
export async function filterSections(names: readonly string[] = []): Promise<GitConfig> {
  const sections: Record<string, Readonly<Record<string, string>>> = {};
  for (const name of names) {
    const settings = Object.entries(await readUserFilter(name));
    sections[`filter "${name}"`] = Object.fromEntries(
      settings.map(([key, value]) => [key.slice(`filter.${name}.`.length), value]),
    );
  }
  return sections;
}

async function listSettings(path: string): Promise<string[]> {
  const text = readUntrustedFile(path, MAX_CONFIG)?.toString("latin1");
  if (text === undefined) return [];
  const query = ["config", "--file", "-", "--no-includes", "--null", "--list"];
  const answer = await runHostGit(query, { ...nowhere(), text, isBinary: true });
  if (answer.exitCode === 0) return answer.stdout.split("\0");
  const reason = gitError(query, answer);
  throw new SandboxError("invalid_argument", `git cannot read ${path}: ${reason.message}`, {
    cause: reason,
    hint: DAMAGED_CONFIG,
  });
}

function toSettings(gitDir: string, entries: readonly string[]): RepositorySettings {
  const version = lastOf(entries, "core.repositoryformatversion") ?? "0";
  const extensions = entries.map(split).flatMap(([key]) => /^extensions\.(.+)$/.exec(key)?.[1] ?? []);
  // A partial clone lacks objects, and nobody fetches them. Other extensions count in version 1 only.
  const unknown = extensions.filter(
    (name) => !KNOWN_EXTENSIONS.has(name) && !/^(partialclone|preciousobjects)$/.test(name),
  );
  if (!/^[01]$/.test(version) || (version === "1" && unknown.length > 0)) {
    const what = unknown.length > 0 ? `the extension ${unknown[0]}` : `format version ${version}`;
    throw new SandboxError("unsupported", `The repository ${gitDir} uses ${what}, which Glovebox does not know`, {
      hint: "Update git and Glovebox, or clone the repository in a format that they know",
    });
  }
  const objectFormat = lastOf(entries, "extensions.objectformat")?.toLowerCase() ?? "sha1";
  if (objectFormat !== "sha1" && objectFormat !== "sha256") {
    throw new SandboxError("unsupported", `Repository "${gitDir}" has the unknown object format ${objectFormat}`);
  }
  const refStorage = lastOf(entries, "extensions.refstorage")?.toLowerCase() ?? "files";
  if (refStorage !== "files" && refStorage !== "reftable") {
    throw new SandboxError("unsupported", `Repository "${gitDir}" has the unknown ref storage ${refStorage}`);
  }
  const bare = lastOf(entries, "core.bare")?.toLowerCase();
  if (bare !== undefined && !/^(true|yes|on|1|false|no|off|0|)$/.test(bare)) {
    throw new SandboxError("invalid_argument", `The repository ${gitDir} has the value "${bare}" for core.bare`, {
      hint: DAMAGED_CONFIG,
    });
  }
  return {
    objectFormat,
    refStorage,
    isPartial: extensions.includes("partialclone"),
    ...(bare !== undefined && { isBare: ["true", "yes", "on", "1"].includes(bare) }),
    core: settingsOf(entries, SAFE_SETTING),
    sharing: settingsOf(entries, SHARING),
    ...pick("workTree", lastOf(entries, "core.worktree")),
    ...pick("originUrl", lastOf(entries, "remote.origin.url")),
  };
}

function pick<K extends string>(name: K, latin1: string | undefined): { [key in K]?: string } {
  if (latin1 === undefined) return {};
  return { [name]: Buffer.from(latin1, "latin1").toString("utf8") } as { [key in K]?: string };
}

/** Splits `key\nvalue`; a key without a value is true. */
function split(entry: string): [key: string, value: string | undefined] {
  const end = entry.indexOf("\n");
  return end === -1 ? [entry, entry === "" ? undefined : "true"] : [entry.slice(0, end), entry.slice(end + 1)];
}

function lastOf(entries: readonly string[], key: string): string | undefined {
  return entries.map(split).findLast(([name]) => name === key)?.[1];
}

function settingsOf(entries: readonly string[], pattern: RegExp): Record<string, string> {
  const settings: Record<string, string> = {};
  for (const entry of entries) {
    const [, key, value] = pattern.exec(entry) ?? [];
    if (key !== undefined && value !== undefined) settings[key] = value;
  }
  return settings;
}

function stateOf(paths: readonly string[]): string {
  return paths
    .map((path) => {
      const found = statSync(path, { bigint: true, throwIfNoEntry: false });
      return found === undefined ? path : `${path} ${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`;
    })
    .join("\n");
}

/** Remembers one value per key until the state changes. */
function createMemory<T>(): (
  key: string,
  state: string,
  read: () => Promise<{ value: T; isLasting: boolean }>,
) => Promise<T> {
  const known = new Map<string, { state: string; value: T }>();
  return async (key, state, read) => {
    const before = known.get(key);
    if (before?.state === state) return before.value;
    const { value, isLasting } = await read();
    if (isLasting) known.set(key, { state, value });
    else known.delete(key);
    return value;
  };
}
