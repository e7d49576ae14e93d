import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import {
  checkedOutAt,
  enclosingRepository,
  findRepository,
  type Repository,
  repositoryGit,
  resolveCommit,
  runRepositoryGit,
  temporaryDirectory,
} from "../../sandbox/host.js";
import { assertBranchName } from "../../util/git/branch-name.js";
import { toInertLine } from "../../util/inert-text.js";
import { NOBODY } from "../commit-all.js";
import { commitMessageOf } from "../github.js";
import { findRunDirectory, type RunDirectory, readReport, readRunPlan } from "../store.js";
import type { RunReport } from "../types.js";

/** How the work of a run becomes a branch. */
export interface LandOptions {
  /** The branch. It must not exist, unless `expected` is given. */
  readonly branch: string;
  /** The repository. Default: the one that the run worked on. */
  readonly repo?: string;
  /** The commit that an existing branch must be at, to be moved. */
  readonly expected?: string;
}

/** A branch that has the work of a run. */
export interface LandResult {
  readonly branch: string;
  readonly commit: string;
  /** The git directory of the repository. */
  readonly gitDir: string;
  readonly files: readonly string[];
}

/**
 * Makes the work of a run one commit on the commit that it started from, and a local branch of that. No file of a working tree
 * and no index changes. A branch that exists and is not at `expected`, or that is checked out anywhere, is `conflict`.
 */
export async function landRun(runId: string, { branch, repo, expected }: LandOptions): Promise<LandResult> {
  assertBranchName(branch);
  const run = await findRunDirectory(runId);
  const [plan, report] = [await readRunPlan(run), await readReport(run)];
  const files = report?.changes?.files.map(({ path }) => path) ?? [];
  if (report?.finishedAt === undefined)
    throw refused(`Run "${runId}" is not over`, `glovebox resume ${runId} finishes it`);
  if (files.length === 0) {
    throw new SandboxError("not_found", `Run "${runId}" changed nothing`, { hint: `glovebox show ${runId}` });
  }
  const { gitDir } = await repositoryAt(repo, plan.sandboxRepo);
  const base = report.baseCommit ?? plan.baseCommit ?? "";
  if (base === "" || (await resolveCommit(gitDir, base)) === undefined) {
    throw refused(
      `The repository does not have ${base || "the commit"} that run "${runId}" started from`,
      "git fetch, or name another one with --repo",
    );
  }
  const old = await currentOf(gitDir, branch, expected);
  const tree = await treeOf(run, report, gitDir, base);
  const commit = await commitOf(gitDir, tree, base, report);
  if (old !== commit) {
    const move = ["update-ref", "--no-deref", "--create-reflog", "-m", `glovebox: run ${runId}`];
    // With the old value: a branch that somebody makes or moves meanwhile stays theirs.
    const moved = await runRepositoryGit([...move, `refs/heads/${branch}`, commit, old ?? ""], gitDir);
    if (moved.exitCode !== 0) {
      const reason = toInertLine(moved.stderr.trim().split("\n")[0] ?? "");
      throw refused(`Branch "${branch}" was not made: ${reason}`, "choose another name; nothing was changed");
    }
  }
  return { branch, commit, gitDir, files };
}

async function repositoryAt(given: string | undefined, own: string): Promise<Repository> {
  const found = await findRepository(enclosingRepository(given ?? own));
  if (given !== undefined || found.topLevel !== undefined) return found;
  throw new SandboxError(
    "invalid_argument",
    `The run worked on a clone of Glovebox's own, not on a repository of yours`,
    {
      hint: "name a clone of yours with --repo",
    },
  );
}

/** Where the branch is now; throws unless it may be made or moved. */
async function currentOf(gitDir: string, branch: string, expected: string | undefined): Promise<string | undefined> {
  const place = await checkedOutAt(gitDir, branch);
  if (place !== undefined) {
    throw refused(`Branch "${branch}" is checked out at ${place}`, "choose another name, then git merge it there");
  }
  const old = await resolveCommit(gitDir, `refs/heads/${branch}`);
  const wanted = expected === undefined ? undefined : await resolveCommit(gitDir, expected);
  if (expected !== undefined && wanted === undefined) {
    throw new SandboxError("invalid_argument", `Invalid expected ${JSON.stringify(expected)} — no such commit`);
  }
  if (old === wanted) return old;
  const now = old === undefined ? "does not exist" : `is at ${old.slice(0, 12)}`;
  if (expected !== undefined)
    throw refused(`Branch "${branch}" ${now}, not at ${expected}`, "look at it first: git log");
  const hint = `choose another name, or move it: --expect ${old?.slice(0, 12)}`;
  throw refused(`Branch "${branch}" exists already and ${now}`, hint);
}

/** The tree of the files that were reviewed: from the run's snapshot if the repository has it, else from the patch. */
async function treeOf(run: RunDirectory, report: RunReport, gitDir: string, base: string): Promise<string> {
  if (report.tree !== undefined) {
    const found = await runRepositoryGit(["cat-file", "-t", report.tree], gitDir);
    if (found.exitCode === 0 && found.stdout.trim() === "tree") return report.tree;
  }
  const scratch = await mkdtemp(join(temporaryDirectory(), "glovebox-land-"));
  try {
    const index = join(scratch, "index");
    await repositoryGit(["read-tree", base], gitDir, { index });
    const applied = await runRepositoryGit(
      ["apply", "--cached", "--whitespace=nowarn", "--", run.state("changes.patch")],
      gitDir,
      { index },
    );
    const tree = applied.exitCode === 0 ? (await repositoryGit(["write-tree"], gitDir, { index })).trim() : undefined;
    if (tree !== undefined && (report.tree ?? tree) === tree) return tree;
    throw refused(
      `The patch of run "${report.runId}" does not give the files that were reviewed`,
      "nothing was changed",
    );
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** A commit that has the same name each time it is made. */
async function commitOf(gitDir: string, tree: string, base: string, report: RunReport): Promise<string> {
  const date = `@${Math.floor(Date.parse(report.finishedAt ?? "") / 1000) || 0} +0000`;
  const env = {
    ...{ GIT_AUTHOR_NAME: NOBODY.name, GIT_AUTHOR_EMAIL: NOBODY.email, GIT_AUTHOR_DATE: date },
    ...{ GIT_COMMITTER_NAME: NOBODY.name, GIT_COMMITTER_EMAIL: NOBODY.email, GIT_COMMITTER_DATE: date },
  };
  const text = Buffer.from(commitMessageOf(report)).toString("latin1");
  return (await repositoryGit(["commit-tree", tree, "-p", base], gitDir, { env, text })).trim();
}

function refused(message: string, hint: string): SandboxError {
  return new SandboxError("conflict", message, { retryable: false, hint });
}
