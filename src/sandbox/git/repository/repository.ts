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

/** A repository of the user's. Every path is absolute and real. */
export interface Repository extends Location {
  readonly objects: string;
  /** Other stores that objects are borrowed from. */
  readonly alternates?: readonly Alternate[];
  /** Filters that were named, which run on the host when files are checked out. */
  readonly filters?: readonly string[];
  readonly objectFormat: "sha1" | "sha256";
  /** Of a clone in our cache: what it is a clone of. */
  readonly url?: string;
}

/** What of a repository takes effect outside it only because the user named it. */
export interface RepositoryTrust {
  readonly gitFilters?: readonly string[] | undefined;
  readonly gitAlternates?: readonly string[] | undefined;
}

/** How long git may think about whose a repository is. */
const TIMEOUT = 10_000;

/** Looks at a directory that is to be a repository: its top level, or the directory of a bare one. */
export async function findRepository(path: string, trust: RepositoryTrust = {}): Promise<Repository> {
  const location = await locateRepository(path);
  const { gitDir } = location;
  checkLayout(gitDir);
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

/** Looks again at a repository that was found before, and may have been changed since: it must not lead elsewhere now. */
export function recheckRepository({ gitDir, alternates }: Repository): void {
  checkLayout(gitDir);
  findAlternates(
    gitDir,
    alternates?.map(({ store }) => store),
  );
}

/** The commit that a name stands for; undefined when there is none. `HEAD` is that of `ownGitDir`, for a linked worktree. */
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

/** Refuses a repository of another user's unless the user has told git to trust it. */
async function assertOwn({ gitDir, topLevel, ownGitDir }: Location): Promise<void> {
  const self = process.geteuid?.();
  const parts = [gitDir, join(gitDir, "objects"), topLevel, topLevel && join(topLevel, ".git"), ownGitDir];
  const owners = parts.flatMap((path) => (path === undefined ? [] : lstatSync(path).uid));
  if (self === undefined || owners.every((uid) => uid === self)) return;
  const cwd = topLevel ?? gitDir;
  // Git knows what the user's own configuration says about that. This query runs nothing, whatever the repository says.
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
