import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { ERROR_CODES, SandboxError, type SandboxErrorCode } from "../../contracts/errors.js";
import type { RunEvent, RunReport } from "../harness.js";
import { defined } from "../util/defined.js";
import { type Attempt, labelsOf } from "./attempt.js";
import { isRefusal, kindOf, stopsAll } from "./failure-kind.js";
import type { OncePerKey } from "./once-per-key.js";
import type { BlueprintTask } from "./types.js";

/** Runs a blueprint. Its report stays among the runs of the batch. */
export async function runBlueprintTask(task: BlueprintTask, attempt: Attempt, images: OncePerKey): Promise<void> {
  const { runHarness } = await import("../harness.js");
  const { options, paths } = attempt;
  const { blueprint, repo, intent, inputs, ref, agent, model, timeout } = task;
  const { sandbox = {}, backend, trust } = options;
  const { githubToken, ...rest } = sandbox;
  const runId = randomBytes(4).toString("hex");
  // Not AbortSignal.any: Node keeps a signal of that kind for as long as the process runs.
  const stop = new AbortController();
  attempt.signal.addEventListener("abort", () => stop.abort(attempt.signal.reason), { once: true });
  let writing: Promise<void> | undefined;
  let ready: (value: undefined) => void = () => undefined;
  const opened = new Promise<undefined>((resolve) => {
    ready = resolve;
  });
  const onEvent = async ({ type }: RunEvent): Promise<void> => {
    if (type !== "sandbox.ready") return;
    ready(undefined);
    writing = attempt.started(runId);
    // To the run, this is somebody who only looks on.
    await writing.catch(() => stop.abort());
  };
  const open = async (): Promise<{ run: Promise<RunReport> }> => {
    const run = runHarness({
      blueprint,
      repo,
      intent,
      runId,
      out: paths.runs,
      keep: "never",
      sandbox: { ...rest, labels: { ...sandbox.labels, ...labelsOf(attempt, task.id) } },
      signal: stop.signal,
      reporter: { event: onEvent },
      ...defined({ inputs, ref, agent, model, sandboxType: backend, trust, githubToken }),
      ...(timeout !== undefined && { limits: { wall: timeout } }),
    });
    const failure = await Promise.race([opened, run.then((report) => infraFailureOf(report, true))]);
    if (failure === undefined) return { run };
    // A run that never had a sandbox has nothing to show, and a busy service makes many of them.
    await rm(join(paths.runs, runId), { recursive: true, force: true });
    throw failure;
  };
  // What the first one fetches or builds, the others find.
  const { run } = await images.first(`${blueprint} ${sandbox.image ?? ""}`, open);
  const report = await run;
  await writing;
  const { status, error, branch, pushResult, cost, totalDurationMs: durationMs } = report;
  const { usd } = cost;
  if (usd !== null) attempt.spent(usd);
  if (status === "cancelled") throw new SandboxError("aborted", `The run ${runId} was interrupted`);
  const failure = infraFailureOf(report, false);
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
export function infraFailureOf(
  { status, error }: Pick<RunReport, "status" | "error">,
  isOpening: boolean,
): SandboxError | undefined {
  if (status !== "error" || error === undefined) return undefined;
  const retryable = error.retryable || OF_PROVIDERS.includes(error.code);
  const known = ERROR_CODES.find((code: SandboxErrorCode) => code === error.code);
  if (known === undefined && !retryable) return undefined;
  const { message, hint } = error;
  const failure = new SandboxError(known ?? "unavailable", message, { ...(retryable && { retryable }), hint });
  const isInfra = kindOf(failure) === "infra" || isRefusal(failure, isOpening) || stopsAll(failure, isOpening);
  return isInfra ? failure : undefined;
}
