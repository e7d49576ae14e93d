import {
  chmodSync,
  closeSync,
  constants,
  createReadStream,
  createWriteStream,
  existsSync,
  fstatSync,
  lstatSync,
  readlinkSync,
  symlinkSync,
} from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { SandboxError } from "../../contracts/errors.js";
import {
  findRepository,
  type Repository,
  resolveCommit,
  temporaryDirectory,
  uncommittedFiles,
} from "../sandbox/host.js";
import type { Sandbox } from "../sandbox/types.js";
import type { OpenOptions } from "../sandbox.js";
import { openBeneath, openIn } from "../util/beneath.js";

/** The state of a working tree that no commit has. */
export interface DirtyFiles {
  /** The top of the working tree. */
  readonly top: string;
  /** Files and links to copy, relative to `top`. */
  readonly copied: readonly string[];
  /** Files that are gone. */
  readonly deleted: readonly string[];
  /** Files that are never copied: `.env*`, and nested repositories. */
  readonly leftOut: readonly string[];
}

/** Lists what the working tree of `--repo` has beyond its commit; undefined if that is no repository with a working tree here. */
export async function findDirtyFiles(options: OpenOptions): Promise<DirtyFiles | undefined> {
  const { repo, gitAlternates, gitFilters } = options;
  if (repo === undefined || !existsSync(repo)) return undefined;
  const repository = await findRepository(repo, {
    ...(gitAlternates !== undefined && { gitAlternates }),
    ...(gitFilters !== undefined && { gitFilters }),
  });
  const { topLevel: top } = repository;
  if (top === undefined) return undefined;
  const paths = [...new Set(await uncommittedFiles(repository, { withUntracked: true, eachFile: true }))];
  const isLeftOut = (path: string): boolean =>
    path.endsWith("/") || path.split("/").some((name) => /^\.env/i.test(name));
  const wanted = paths.filter((path) => !isLeftOut(path));
  const found = wanted.filter((path) => isThere(top, path));
  const deleted = wanted.filter((path) => !found.includes(path));
  return { top, copied: found, deleted, leftOut: paths.filter(isLeftOut) };
}

/** Refuses `--include-dirty` for a branch that does not start where the working tree does. */
export async function assertSameStart({ repo = "", branch }: OpenOptions): Promise<void> {
  if (branch === undefined) return;
  const { gitDir, ownGitDir = gitDir }: Repository = await findRepository(repo);
  const start = await resolveCommit(gitDir, `refs/heads/${branch}`);
  if (start === undefined || start === (await resolveCommit(gitDir, "HEAD", ownGitDir))) return;
  throw new SandboxError("conflict", `Branch "${branch}" is at another commit than your working tree`, {
    retryable: false,
    hint: "leave --branch or --include-dirty out",
  });
}

/** A note that says which edits a sandbox does not have; undefined if it has all. */
export function dirtyNote({ copied, deleted, leftOut }: DirtyFiles, isIncluded: boolean): string | undefined {
  const missing = isIncluded ? leftOut : [...copied, ...deleted, ...leftOut];
  if (missing.length === 0) return undefined;
  const names = missing.slice(0, MOST_NAMED).join(", ");
  const more = missing.length > MOST_NAMED ? `, and ${missing.length - MOST_NAMED} more` : "";
  if (isIncluded) return `left out: ${names}${more}; .env files and nested repositories are never copied in`;
  return `uncommitted edits are left out: ${names}${more}; --include-dirty copies them in`;
}

const MOST_NAMED = 3;

/** Copies the state of a working tree into a sandbox that starts at the same commit. Nothing of the working tree changes. */
export async function copyDirtyFiles(sandbox: Sandbox, dirty: DirtyFiles, signal: AbortSignal): Promise<void> {
  for (const path of dirty.deleted) await sandbox.deleteFile(path, { signal });
  const staging = await mkdtemp(join(temporaryDirectory(), "glovebox-dirty-"));
  try {
    for (const path of dirty.copied) {
      signal.throwIfAborted();
      const wasDirectory = dirty.deleted.some((gone) => gone.startsWith(`${path}/`));
      if (wasDirectory) await sandbox.remove(path, { recursive: true, signal });
      await stage(dirty.top, path, staging);
    }
    if (dirty.copied.length > 0) await sandbox.refreshFromHost(staging, ".", { signal });
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** Copies one file or link, reached without following a link; what is neither by now is left out. */
async function stage(top: string, path: string, staging: string): Promise<void> {
  const names = path.split("/");
  const name = names.pop() ?? "";
  const target = join(staging, path);
  using directory = openBeneath(top, names);
  const found = lstatSync(directory.at(name), { throwIfNoEntry: false });
  if (found === undefined || !(found.isFile() || found.isSymbolicLink())) return;
  await mkdir(dirname(target), { recursive: true });
  if (found.isSymbolicLink()) {
    symlinkSync(readlinkSync(directory.at(name), { encoding: "buffer" }), target);
    return;
  }
  const file = openIn(directory, name, constants.O_RDONLY);
  const opened = fstatSync(file);
  if (!opened.isFile()) {
    closeSync(file);
    return;
  }
  await pipeline(createReadStream("", { fd: file }), createWriteStream(target, { flags: "wx", mode: 0o600 }));
  chmodSync(target, opened.mode & 0o777);
}

/** Whether there is a file or a link, in a directory that no link leads to. */
function isThere(top: string, path: string): boolean {
  const names = path.split("/");
  const name = names.pop() ?? "";
  try {
    using directory = openBeneath(top, names);
    const found = lstatSync(directory.at(name));
    return found.isFile() || found.isSymbolicLink();
  } catch {
    return false;
  }
}
