import { SandboxError } from "../../../contracts/errors.js";
import type { Sandbox } from "../../sandbox/types.js";
import { openSandbox } from "../../sandbox.js";
import { gitHubHost, pushAndCreatePR } from "../github.js";
import {
  assertPlanUntouched,
  changesOf,
  claimRun,
  findRunDirectory,
  livesInSandbox,
  type RunDirectory,
  type RunPlan,
  RunRecorder,
  readEndState,
  readReport,
  readRunPlan,
  releaseRun,
  remoteNow,
} from "../store.js";
import type { PrWith, PushResult, RunReport } from "../types.js";
import { withFiles } from "./open-run-sandbox.js";

/** Pushes what a run made, later than the run: exactly the files that its report lists. */
export async function pushRunAgain(
  runId: string,
  opts: { githubToken: string | undefined; draft?: boolean; base?: string; prWith?: PrWith; signal?: AbortSignal },
): Promise<PushResult> {
  const directory = await findRunDirectory(runId);
  await assertPlanUntouched(directory);
  const plan = await readRunPlan(directory);
  const report = await readReport(directory);
  if (report?.finishedAt === undefined) {
    throw new SandboxError("conflict", `Run "${runId}" is not over`, {
      retryable: false,
      hint: `glovebox resume ${runId} finishes it`,
    });
  }
  await claimRun(directory);
  try {
    const result = await pushFrom(directory, plan, report, opts);
    const recorder = new RunRecorder({ directory, report, nodeIds: [], reporters: [], hidden: {} });
    report.push = true;
    report.pushResult = result;
    await recorder.record({ type: "push.finished", result });
    recorder.saveReport();
    await recorder.finish();
    return result;
  } finally {
    releaseRun(directory);
  }
}

async function pushFrom(
  directory: RunDirectory,
  plan: RunPlan,
  report: RunReport,
  opts: Parameters<typeof pushRunAgain>[1],
): Promise<PushResult> {
  if (opts.githubToken === undefined || opts.githubToken === "") {
    return { pushed: false, error: "GITHUB_TOKEN required for push", state: "no_token" };
  }
  if ((report.changes?.files.length ?? 0) === 0) return { pushed: false, state: "no_changes" };
  const sandbox = await reviewedFiles(directory, plan, report, opts);
  try {
    return await pushAndCreatePR({
      sandbox,
      report,
      branch: plan.branch,
      githubToken: opts.githubToken,
      host: gitHubHost(process.env),
      remote: await remoteNow(plan),
      base: opts.base ?? plan.base,
      prWith: opts.prWith ?? plan.prWith,
      draft: opts.draft ?? (plan.draft || report.status !== "success"),
    });
  } finally {
    await sandbox.teardown();
  }
}

/** A sandbox with the files of the report: the kept one when it still has them, else a new one. */
async function reviewedFiles(
  directory: RunDirectory,
  plan: RunPlan,
  report: RunReport,
  opts: { signal?: AbortSignal; githubToken?: string | undefined },
): Promise<Sandbox> {
  const always = {
    backend: plan.backend,
    ...(opts.signal && { signal: opts.signal }),
    ...(opts.githubToken && { githubToken: opts.githubToken }),
  };
  const end = await readEndState(directory);
  if (report.sandbox?.kept === true) {
    const kept = await openSandbox({ ...always, id: report.sandbox.id, keep: true }).catch(() => undefined);
    if (kept !== undefined) {
      if ((await kept.changes()).patch === (await changesOf(plan.runId)).patch) return kept;
      await kept.teardown();
      throw new SandboxError("conflict", `The files in sandbox "${kept.id}" are not those that were reviewed`, {
        retryable: false,
        hint: `glovebox resume ${plan.runId} checks them again`,
      });
    }
  }
  if (end === undefined) {
    throw new SandboxError("not_found", `The files of run "${plan.runId}" were not saved`, {
      hint: "changes.patch in its directory has what it did",
    });
  }
  const isGone = await livesInSandbox(end.snapshotId);
  // Only git runs in it: an allow list might exclude that, and it needs no secret.
  const { allow: _, secrets: _secrets, ...options } = plan.sandbox;
  const sandbox = await openSandbox({
    ...always,
    ...options,
    ...(!isGone && { network: "none" }),
    repo: plan.sandboxRepo,
    branch: plan.branch,
  });
  // A snapshot that lived in its sandbox is gone with it; what was reviewed is the patch.
  return await withFiles(sandbox, isGone ? { patch: (await changesOf(plan.runId)).patch } : end);
}
