import { join } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import {
  enclosingRepository,
  findRepository,
  type Repository,
  runRepositoryGit,
  uncommittedFiles,
} from "../../sandbox/host.js";
import { toInertLine } from "../../util/inert-text.js";
import { findRunDirectory, readReport, readRunPlan } from "../store.js";

/** The result of applying the changes of a run. */
export interface ApplyResult {
  /** The working tree that was changed. */
  readonly directory: string;
  readonly files: readonly string[];
  /** Files that have conflict markers now. */
  readonly conflicts: readonly string[];
}

/** Applies the changes of a run to a working tree, three-way. A tree with changes of its own is `conflict` and stays as it is. */
export async function applyRun(runId: string, into?: string): Promise<ApplyResult> {
  const run = await findRunDirectory(runId);
  const plan = await readRunPlan(run);
  const files = (await readReport(run))?.changes?.files.map(({ path }) => path) ?? [];
  if (files.length === 0) {
    throw new SandboxError("not_found", `Run "${runId}" changed nothing`, { hint: `glovebox show ${runId}` });
  }
  const repository = await repositoryAt(into ?? plan.sandboxRepo);
  const { gitDir, ownGitDir = gitDir, topLevel: directory } = repository;
  if ((await uncommittedFiles(repository)).length > 0) {
    throw new SandboxError("conflict", `${directory} has changes that are not committed`, {
      retryable: false,
      hint: "git stash, or commit them; nothing was touched",
    });
  }
  const apply = ["apply", "--3way", "--whitespace=nowarn", "--", run.state("changes.patch")];
  const place = { workTree: directory, index: join(ownGitDir, "index"), isForeignTree: true };
  const answer = await runRepositoryGit(apply, gitDir, place);
  const list = ["diff", "--name-only", "--diff-filter=U", "--ignore-submodules=all", "-z"];
  const unmerged = await runRepositoryGit(list, gitDir, place);
  const conflicts = unmerged.stdout.split("\0").filter((path) => path !== "");
  if (answer.exitCode !== 0 && conflicts.length === 0) {
    const reason = answer.stderr.split("\n").find((line) => line.startsWith("error:")) ?? answer.stderr;
    throw new SandboxError("conflict", `The changes of run "${runId}" do not apply: ${toInertLine(reason.trim())}`, {
      retryable: false,
      hint: "nothing was touched; glovebox diff shows the patch",
    });
  }
  return { directory, files, conflicts };
}

/** The repository whose working tree a path is in. */
async function repositoryAt(path: string): Promise<Repository & { topLevel: string }> {
  const { topLevel, ...rest } = await findRepository(enclosingRepository(path));
  if (topLevel !== undefined) return { ...rest, topLevel };
  throw new SandboxError("invalid_argument", `${path} has no working tree to apply the changes to`, {
    hint: "glovebox apply <runId> --repo <path of a working tree>",
  });
}
