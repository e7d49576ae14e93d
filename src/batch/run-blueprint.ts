import { randomBytes } from "node:crypto";
import { ERROR_CODES, SandboxError, type SandboxErrorCode } from "../../contracts/errors.js";
import type { RunReport } from "../harness.js";
import { defined } from "../util/defined.js";
import { type Attempt, labelsOf } from "./attempt.js";
import { kindOf } from "./failure-kind.js";
import type { BlueprintTask } from "./types.js";

/** Runs a blueprint. Its report stays among the runs of the batch. */
export async function runBlueprintTask(task: BlueprintTask, attempt: Attempt): Promise<void> {
  const { runHarness } = await import("../harness.js");
  const { options, signal, paths } = attempt;
  const { blueprint, repo, intent, inputs, ref, agent, model, timeout } = task;
  const { sandbox = {}, backend, trust } = options;
  const { githubToken, ...rest } = sandbox;
  const runId = randomBytes(4).toString("hex");
  await attempt.started(runId);
  const report = await runHarness({
    blueprint,
    repo,
    intent,
    runId,
    out: paths.runs,
    keep: "never",
    sandbox: { ...rest, labels: { ...sandbox.labels, ...labelsOf(attempt, task.id) } },
    signal,
    ...defined({ inputs, ref, agent, model, sandboxType: backend, trust, githubToken }),
    ...(timeout !== undefined && { limits: { wall: timeout } }),
  });
  const { status, error, branch, pushResult, cost, totalDurationMs: durationMs } = report;
  const { usd } = cost;
  if (usd !== null) attempt.spent(usd);
  if (status === "cancelled") throw new SandboxError("aborted", `The run ${runId} was interrupted`);
  const failure = infraFailureOf(report);
  if (failure !== undefined) throw failure;
  const outcome = status === "success" || status === "no_changes" ? "passed" : "failed";
  await attempt.ended({
    outcome,
    durationMs,
    resource: runId,
    run: { status, ...defined({ branch, pullRequest: pushResult?.prUrl }) },
    ...(error !== undefined && {
      error: { code: error.code, message: error.message, ...defined({ hint: error.hint }) },
    }),
  });
}

/** Failures of an agent that are its provider's: the next attempt may have more luck. */
const OF_PROVIDERS: readonly string[] = ["quota", "rate_limit", "network", "crash"];

/** Why the infrastructure failed a run; undefined if that is the run's own end, which is a result. */
export function infraFailureOf({ status, error }: Pick<RunReport, "status" | "error">): SandboxError | undefined {
  if (status !== "error" || error === undefined) return undefined;
  const retryable = error.retryable || OF_PROVIDERS.includes(error.code);
  const known = ERROR_CODES.find((code: SandboxErrorCode) => code === error.code);
  if (known === undefined && !retryable) return undefined;
  const { message, hint } = error;
  const failure = new SandboxError(known ?? "unavailable", message, { ...(retryable && { retryable }), hint });
  return kindOf(failure) === "infra" ? failure : undefined;
}
