import { existsSync, lstatSync } from "node:fs";
import { dirname, join } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import { gitError, runHostGit } from "../host.js";
import { type Location, locateRepository } from "./locate-repository.js";
import { type Alternate, findAlternates } from "./object-store.js";
import { readHeadFile, readRefFile } from "./ref-file.js";
import { runRepositoryGit } from "./repository-git.js";
import { checkLayout } from "./repository-layout.js";
import { readRepositorySettings, readUserFilter } from "./repository-settings.js";

/** A source, or the clone of one. Every path is absolute and real. */
export interface Repository extends Location {
  readonly objects: string;
  /** Other object stores that it borrows from. */
  readonly alternates?: readonly Alternate[];
  /** Filters that the user named. They run on the host when files are checked out. */
  readonly filters?: readonly string[];
  readonly objectFormat: "sha1" | "sha256";
  /** Of a clone in the cache: the URL of its source. */
  readonly url?: string;
}

/** What a repository may use beyond itself, because the user named it. */
export interface RepositoryTrust {
  readonly gitFilters?: readonly string[] | undefined;
  readonly gitAlternates?: readonly string[] | undefined;
}

/** Milliseconds for git to decide whether it trusts the owner. */
const TIMEOUT = 10_000;

/** Finds and checks the repository at a path: its top level, or the directory of a bare one. */
export async function findRepository(path: string, trust: RepositoryTrust = {}): Promise<Repository> {
  const location = await locateRepository(path);
  const { gitDir } = location;
  checkLayouts(location);
  await assertOwn(location);
  const { objectFormat } = await readRepositorySettings(gitDir);
  const alternates = findAlternates(gitDir, trust.gitAlternates);
  for (const name of trust.gitFilters ?? []) await assertDefined(name);
  return {
    ...location,
    objects: join(gitDir, "objects"),
    objectFormat,
    ...(alternates.length > 0 && { alternates }),
    ...(trust.gitFilters?.length && { filters: trust.gitFilters }),
  };
}

/** Checks again a repository that was found before and may have changed since. */
export function recheckRepository(repository: Repository): void {
  const { gitDir, alternates } = repository;
  checkLayouts(repository);
  findAlternates(
    gitDir,
    alternates?.map(({ store }) => store),
  );
}

/** The commit of a name; undefined when there is none. `HEAD` is that of `ownGitDir`, for a linked worktree. */
export async function resolveCommit(
  gitDir: string,
  name: string,
  ownGitDir: string = gitDir,
): Promise<string | undefined> {
  if (ownGitDir === gitDir) {
    const plain = await readRefFile(gitDir, name);
    if (plain !== undefined) return plain;
  }
  const head = existsSync(join(gitDir, "reftable")) ? null : /^(?:HEAD|@)([~^:@].*)?$/s.exec(name);
  const { ref, sha } = head === null ? { ref: name } : readHeadFile(ownGitDir);
  const asked = ref ?? sha;
  if (asked === undefined) return undefined;
  const query = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${asked}${head?.[1] ?? ""}^{commit}`];
  const answer = await runRepositoryGit(query, gitDir);
  return answer.exitCode === 0 ? answer.stdout.trim() : undefined;
}

/** A linked worktree has an index of its own, and git writes through a link in its place. */
function checkLayouts({ gitDir, ownGitDir }: Location): void {
  checkLayout(gitDir);
  if (ownGitDir !== undefined) checkLayout(ownGitDir);
}

/** Refuses the repository of another user, unless git is configured to trust it. */
async function assertOwn({ gitDir, topLevel, ownGitDir }: Location): Promise<void> {
  const self = process.geteuid?.();
  const parts = [gitDir, join(gitDir, "objects"), topLevel, topLevel && join(topLevel, ".git"), ownGitDir];
  const owners = parts.flatMap((path) => (path === undefined ? [] : lstatSync(path).uid));
  if (self === undefined || owners.every((uid) => uid === self)) return;
  const cwd = topLevel ?? gitDir;
  // Git knows what the user's configuration trusts. This query executes nothing, whatever the repository says.
  const query = ["rev-parse", "--git-dir"];
  const env = { GIT_CEILING_DIRECTORIES: dirname(cwd) };
  const answer = await runHostGit(query, { cwd, env, signal: AbortSignal.timeout(TIMEOUT), interruptible: true });
  if (answer.exitCode !== 0) throw gitError(query, answer);
}

async function assertDefined(filter: string): Promise<void> {
  if (Object.keys(await readUserFilter(filter)).length > 0) return;
  throw new SandboxError("missing_dependency", `Your git configuration does not define the filter "${filter}"`, {
    hint: filter === "lfs" ? "git lfs install" : `git config --global filter.${filter}.smudge <command>`,
  });
}
