import { toSandboxError } from "../../../contracts/errors.js";
import type { Sandbox } from "../../sandbox/types.js";
import { removeSandbox } from "../../sandbox.js";
import { redact } from "../../util/redact.js";
import { commitAll, dropSavingCommits, NOBODY } from "../commit-all.js";
import { commitMessageOf, pushAndCreatePR, withoutSecrets } from "../github.js";
import {
  filesOfPatch,
  patchOfSnapshot,
  type RunDirectory,
  type RunPlan,
  type RunRecorder,
  readCheckpoints,
  readPatch,
  saveEndState,
  summarize,
  treeOfPatch,
  treeOfSnapshot,
  writeBoth,
} from "../store.js";
import { EXIT_CODES, type PushResult, type RunOutcome, type RunReport, type RunStatus } from "../types.js";
import type { SessionOptions } from "./session-options.js";
import type { WallClock } from "./wall-clock.js";

/**
 * Takes the work out of the sandbox: the patch, the saved files and their tree. What fails is a warning. A snapshot that
 * was made after the last node is not made again, unless something is committed on top of it.
 */
export async function collectWork(
  { plan, directory, hidden }: SessionOptions,
  recorder: RunRecorder,
  sandbox: Sandbox,
  outcome: Pick<RunOutcome, "status" | "sandboxLost">,
  clock: WallClock,
  savedAlready?: string,
): Promise<void> {
  const { report } = recorder;
  if (outcome.sandboxLost) return await collectFromCheckpoint(plan, directory, recorder);
  const attempt = async (what: string, work: () => Promise<void>): Promise<void> => {
    await clock
      .bounded("saving", work)
      .catch((error: unknown) => recorder.warn(`${what}: ${toSandboxError(error).message}`));
  };
  if (plan.push) {
    // Without git in the sandbox, or where that fails, the push makes the commit.
    const message = redact(commitMessageOf(withoutSecrets(report, hidden)), hidden);
    await attempt(
      "what is left over could not be committed",
      async () => void (await commitAll(sandbox, message, NOBODY)),
    );
  }
  let patch = "";
  await attempt("the changes cannot be listed", async () => {
    const changes = await sandbox.changes();
    patch = changes.patch;
    report.changes = summarize(patch, changes.files);
  });
  await writeBoth(directory, "changes.patch", patch);
  const isWorthSaving = outcome.status !== "success" || (report.changes?.files.length ?? 0) > 0;
  if (!isWorthSaving || sandbox.capabilities.snapshot === "none") return;
  await attempt("the files could not be saved", async () => {
    const snapshotId = (plan.push ? undefined : savedAlready) ?? (await sandbox.snapshot());
    if (plan.push) await dropSavingCommits(sandbox);
    const { gitDir, baseCommit } = plan;
    const tree =
      (await treeOfSnapshot(snapshotId, sandbox)) ??
      (gitDir === undefined || baseCommit === undefined
        ? undefined
        : await treeOfPatch(gitDir, baseCommit, directory.state("changes.patch")));
    await saveEndState(directory, { snapshotId, ...(tree !== undefined && { tree }) });
    if (tree !== undefined) report.tree = tree;
  });
}

/** The sandbox is gone: what its last checkpoint has is all there is. */
async function collectFromCheckpoint(plan: RunPlan, directory: RunDirectory, recorder: RunRecorder): Promise<void> {
  const last = (await readCheckpoints(directory)).findLast(({ snapshotId }) => snapshotId !== undefined);
  let patch: string | undefined;
  if (last?.snapshotId !== undefined) {
    patch = await readPatch(directory, last.snapshotId);
    if (plan.baseCommit !== undefined) {
      patch ??= await patchOfSnapshot(last.snapshotId, plan.baseCommit).catch(() => undefined);
    }
  }
  await writeBoth(directory, "changes.patch", patch ?? "");
  if (patch !== undefined) recorder.report.changes = summarize(patch, filesOfPatch(patch));
  const from = patch === undefined ? "no checkpoint was saved before" : `the patch is that after node ${last?.nodeId}`;
  await recorder.warn(`the sandbox was lost; ${from}`);
}

/** How the run ended, now that the changes are known. */
export function finalStatus(outcome: RunOutcome["status"], report: RunReport, expectsChanges: boolean): RunStatus {
  if (outcome !== "success" || !expectsChanges || report.changes === undefined) return outcome;
  return report.changes.files.length === 0 ? "no_changes" : "success";
}

/** What the process exits with. A push that failed does not make the run a failure, only the process says so. */
export function exitCodeOf(status: RunStatus, pushResult: PushResult | undefined, signal?: AbortSignal): number {
  if (status === "success" && pushResult?.error !== undefined) return EXIT_CODES.push;
  const codes: Record<RunStatus, number> = {
    success: EXIT_CODES.success,
    failed: EXIT_CODES.failed,
    error: EXIT_CODES.environment,
    limit: EXIT_CODES.limit,
    no_changes: EXIT_CODES.noChanges,
    cancelled: interruptedCode(signal?.reason),
  };
  return codes[status];
}

/** A signal that ended the process has an exit code of its own, which whoever cancels may name. */
function interruptedCode(reason: unknown): number {
  const { exitCode } = typeof reason === "object" && reason !== null ? (reason as { exitCode?: unknown }) : {};
  const isOfSignal = typeof exitCode === "number" && Number.isInteger(exitCode) && exitCode > 128 && exitCode < 256;
  return isOfSignal ? exitCode : EXIT_CODES.interrupted;
}

/** Pushes the branch if the way the run ended allows it. */
export async function pushRun(
  { plan, host, githubToken, hidden }: SessionOptions,
  report: RunReport,
  status: RunStatus,
  sandbox: Sandbox,
): Promise<PushResult> {
  if (status === "no_changes") return { pushed: false, state: "no_changes" };
  const isAllowed = status === "success" || plan.pushOn === "always" || (plan.pushOn === "limit" && status === "limit");
  if (!isAllowed || status === "error") {
    return { pushed: false, state: "not_allowed", error: `not pushed: the run ended with ${status}` };
  }
  const draft = plan.draft || status !== "success";
  return await pushAndCreatePR({
    sandbox,
    report: { ...report, status },
    branch: plan.branch,
    githubToken,
    host,
    remote: plan.remoteUrl ?? plan.repo,
    base: plan.base,
    prWith: plan.prWith,
    draft,
    hidden,
  });
}

/** Whether the files of a sandbox stay when the run has ended like this. */
export function isLeft({ keep }: RunPlan, status: RunStatus): boolean {
  const wentWell = status === "success" || status === "no_changes";
  return keep === "always" || (keep === "failed" && !wentWell);
}

/** Closes the sandbox, and removes it unless it is kept. */
export async function leaveSandbox(plan: RunPlan, status: RunStatus, sandbox: Sandbox): Promise<void> {
  await sandbox.teardown();
  // One that could be reopened was made to be kept, so it is removed only by its name.
  if (!isLeft(plan, status) && plan.keep !== "never") await removeSandbox(sandbox.id).catch(() => undefined);
}
