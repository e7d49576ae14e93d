import { existsSync, lstatSync, realpathSync, statSync } from "node:fs";
import { lstat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import { readHeadFile } from "./ref-file.js";
import { readRepositorySettings } from "./repository-settings.js";
import { lookAt, readUntrustedFile } from "./untrusted-file.js";

/** Where the parts of a repository are; absolute, real paths. */
export interface Location {
  /** The git directory, which all worktrees share. */
  readonly gitDir: string;
  /** Absent for a bare repository. */
  readonly topLevel?: string;
  /** The git directory of a linked worktree. */
  readonly ownGitDir?: string;
}

const MAX_LINE = 64 << 10;

/**
 * Finds the git directory of a repository, without git, which would follow whatever the files say.
 *
 * A `.git` file may only lead to a git directory that names this directory in turn, as linked worktrees and submodules do. Otherwise a
 * directory from anywhere could claim any repository of the user's, and its objects would become visible in the sandbox.
 */
export async function locateRepository(path: string): Promise<Location> {
  const cwd = realDirectory(path);
  const dot = join(cwd, ".git");
  const found = lstatSync(dot, { throwIfNoEntry: false });
  if (found === undefined) {
    if (isGitDirectory(cwd)) return { gitDir: cwd };
    throw noRepository(path, cwd);
  }
  if (found.isFile()) return await followGitFile(path, cwd, dot);
  if (!found.isDirectory()) throw claimed(path, "its .git is a link");
  if (existsSync(join(dot, "commondir"))) throw claimed(path, "its .git leads to another by the file commondir");
  if (!isGitDirectory(dot)) throw noRepository(path, cwd);
  return { gitDir: dot, topLevel: cwd };
}

async function followGitFile(path: string, cwd: string, dot: string): Promise<Location> {
  const [, named] = /^gitdir: ([^\n]+)\n*$/.exec(readText(dot)) ?? [];
  const own = named === undefined ? undefined : real(resolve(cwd, named));
  if (own === undefined) throw noRepository(path, cwd);
  const common = readText(join(own, "commondir")).trimEnd();
  if (common === "") {
    const { workTree } = isGitDirectory(own) ? await readRepositorySettings(own) : {};
    if (workTree !== undefined && real(resolve(own, workTree)) === cwd) return { gitDir: own, topLevel: cwd };
    throw claimed(path, "its .git leads to a git directory that does not know it", own);
  }
  const gitDir = real(resolve(own, common));
  const back = readText(join(own, "gitdir")).trimEnd();
  const isKnown = back !== "" && real(dirname(resolve(own, back))) === cwd && resolve(own, back).endsWith("/.git");
  if (gitDir === undefined || dirname(own) !== join(gitDir, "worktrees") || !isGitDirectory(gitDir) || !isKnown) {
    throw claimed(path, "its .git leads to a worktree that does not know it", gitDir);
  }
  return { gitDir, topLevel: cwd, ownGitDir: own };
}

/** The nearest directory at or above a path that has a `.git`; the path itself when there is none. */
export function enclosingRepository(path: string): string {
  let top = resolve(path);
  while (!existsSync(join(top, ".git")) && top !== dirname(top)) top = dirname(top);
  return existsSync(join(top, ".git")) ? top : path;
}

/** Whether a repository still exists. Checks nothing else. */
export async function repositoryExists(gitDir: string): Promise<boolean> {
  return (await lstat(join(gitDir, "HEAD")).catch(() => undefined)) !== undefined;
}

/** Whether git would take a directory for a git directory. */
function isGitDirectory(path: string): boolean {
  if (["HEAD", "objects", "refs"].some((name) => lookAt(join(path, name)) === undefined)) return false;
  const { ref, sha } = readHeadFile(path);
  return ref !== undefined || sha !== undefined;
}

function readText(path: string): string {
  return readUntrustedFile(path, MAX_LINE)?.toString("utf8") ?? "";
}

function real(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    return undefined;
  }
}

function realDirectory(path: string): string {
  let found: string;
  try {
    found = realpathSync.native(resolve(path));
  } catch (cause) {
    throw new SandboxError("not_found", `Invalid repo "${path}" — no such directory`, {
      cause,
      hint: "check the path; a remote repository is a URL, such as https://github.com/org/name",
    });
  }
  if (statSync(found).isDirectory()) return found;
  throw new SandboxError("invalid_argument", `Invalid repo "${path}" — not a directory`);
}

function claimed(path: string, why: string, elsewhere?: string): SandboxError {
  return new SandboxError("tampered", `Invalid repo "${path}" — ${why}`, {
    hint:
      elsewhere === undefined
        ? "open the repository itself, by its real path"
        : `if that is a repository of yours, open it by its own path: ${elsewhere}; for a worktree that was moved: git worktree repair`,
  });
}

function noRepository(path: string, cwd: string): SandboxError {
  if (lookAt(join(cwd, ".git")) !== undefined) {
    return new SandboxError("invalid_argument", `Invalid repo "${path}" — not a git repository`, {
      hint: "Its .git lacks a valid HEAD, objects or refs, or leads nowhere. Clone it again",
    });
  }
  const above = enclosingRepository(dirname(cwd));
  const hint = existsSync(join(above, ".git")) ? `The repository above it is ${above}` : "Make it one with: git init";
  return new SandboxError("invalid_argument", `Invalid repo "${path}" — not a git repository`, { hint });
}
