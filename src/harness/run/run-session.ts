import { readFileSync } from "node:fs";
import { toSandboxError } from "../../../contracts/errors.js";
import type { Sandbox } from "../../sandbox/types.js";
import { deleteSnapshot } from "../../sandbox.js";
import { defined } from "../../util/defined.js";
import { isoTime } from "../../util/iso-time.js";
import { redact, registerSecret } from "../../util/sanitize.js";
import { runBlueprint } from "../engine.js";
import { type AgentNeed, needsOf } from "../needs.js";
import { reportHtml, reportMarkdown } from "../report.js";
import {
  claimRun,
  deleteUnmovedBranch,
  forgetCheckpoints,
  forgetEndState,
  RunRecorder,
  readSessions,
  releaseRun,
  snapshotsOf,
  watchStopRequest,
  writeBoth,
  writePublic,
} from "../store.js";
import type { RunContext, RunError, RunOutcome, RunReport, RunStatus } from "../types.js";
import { canContinue, sessionFoldersOf, unpackSessions } from "./agent-sessions.js";
import { Checkpointer } from "./checkpointer.js";
import { collectWork, exitCodeOf, finalStatus, isLeft, leaveSandbox, pushRun } from "./finish-run.js";
import { openRunSandbox } from "./open-run-sandbox.js";
import type { ResumePoint, SessionOptions } from "./session-options.js";
import { WallClock } from "./wall-clock.js";

/** Runs the nodes of a run, or what is left of them, to a report. Whatever happens on the way, there is a report. */
export async function runSession(opts: SessionOptions): Promise<RunReport> {
  const { plan, directory, blueprint, resume, hidden } = opts;
  await claimRun(directory);
  // The engine and the sandbox must not show the token that only the push needs.
  const forget = opts.githubToken ? registerSecret(opts.githubToken, "GITHUB_TOKEN") : () => undefined;
  let recorder: RunRecorder;
  try {
    const nodeIds = blueprint.nodes.map(({ id }) => id);
    recorder = new RunRecorder({ directory, report: firstReport(opts), nodeIds, reporters: opts.reporters, hidden });
  } catch (error) {
    forget();
    releaseRun(directory);
    throw error;
  }
  const stopping = new AbortController();
  const signals = [stopping.signal, ...(opts.signal === undefined ? [] : [opts.signal])];
  const unwatch = watchStopRequest(directory, () => stopping.abort(new Error("stopped by glovebox stop")));
  const clock = new WallClock(plan.limits?.wall ?? blueprint.limits.wall, opts.startedAt);
  try {
    const { intent, repo } = plan;
    const nodes = blueprint.nodes.map(({ id, kind }) => ({ id, kind }));
    await recorder.record({ type: "run.started", blueprint: blueprint.name, repo, intent, nodes });
    recorder.saveReport();
    for (const warning of opts.warnings) await recorder.warn(warning);
    await runInSandbox(opts, recorder, AbortSignal.any(signals), clock);
  } catch (error) {
    // An unforeseen error is the harness's own, and the report says so.
    const { code, message, hint } = toSandboxError(error);
    recorder.report.error ??= { code, message: redact(message), retryable: false, ...(hint && { hint }) };
    setStatus(opts, recorder.report, "error");
  } finally {
    unwatch();
    if (resume?.startAt !== undefined) recorder.report.resumedFrom = resume.startAt;
    clock.end();
    await conclude(opts, recorder, clock.elapsed);
    forget();
  }
  return recorder.report;
}

async function runInSandbox(
  opts: SessionOptions,
  recorder: RunRecorder,
  signal: AbortSignal,
  clock: WallClock,
): Promise<void> {
  const { plan } = opts;
  const { report } = recorder;
  const startedAt = performance.now();
  await recorder.record({ type: "sandbox.creating", backend: plan.backend });
  let opened: Awaited<ReturnType<typeof openRunSandbox>>;
  try {
    const until = AbortSignal.any([signal, clock.openingSignal]);
    until.throwIfAborted();
    opened = await openRunSandbox(opts, until, ({ type, message }) => {
      if (type === "warning" || type === "leak") void recorder.warn(message);
    });
    clock.setAside(performance.now() - startedAt);
  } catch (error) {
    await notOpened(opts, recorder, error, signal, clock);
    await writeBoth(opts.directory, "changes.patch", "");
    return;
  }
  const { sandbox, madeBranch } = opened;
  const { id, backend, workDir } = sandbox;
  report.sandbox = { type: backend, id, ...(plan.sandbox.image && { image: plan.sandbox.image }), kept: true };
  await recorder.record({ type: "sandbox.ready", backend, sandboxId: id, workDir });
  // A later process must find the sandbox also when this one is killed.
  recorder.saveReport();
  let status: RunStatus = "error";
  try {
    const { outcome, saved } = await runNodes(opts, recorder, sandbox, signal, clock);
    takeOver(report, outcome);
    await collectWork(opts, recorder, sandbox, outcome, clock, saved);
    status = finalStatus(outcome.status, report, opts.blueprint.expectsChanges);
    setStatus(opts, report, status);
    if (plan.push) {
      report.pushResult = await clock.outside(() => pushRun(opts, report, status, sandbox));
      await recorder.record({ type: "push.finished", result: report.pushResult });
      setStatus(opts, report, status);
    }
  } finally {
    const kept = isLeft(plan, status);
    const leaving = async (): Promise<void> => {
      await leaveSandbox(plan, status, sandbox);
      if (madeBranch && !kept && plan.gitDir !== undefined && plan.baseCommit !== undefined) {
        await deleteUnmovedBranch(plan.gitDir, plan.branch, plan.baseCommit);
      }
    };
    await clock.bounded("leaving", leaving).catch((error: unknown) => {
      return recorder.warn(`the sandbox ${id} is still being closed: ${toSandboxError(error).message}`);
    });
    report.sandbox.kept = kept;
    await recorder.record({ type: "sandbox.destroyed", kept });
  }
}

/** A run without a sandbox: it was cancelled, its time was over, or none could be opened. */
async function notOpened(
  opts: SessionOptions,
  recorder: RunRecorder,
  error: unknown,
  signal: AbortSignal,
  clock: WallClock,
): Promise<void> {
  const { report } = recorder;
  report.error = toRunError(error);
  const isLate = !signal.aborted && clock.openingSignal.aborted;
  setStatus(opts, report, signal.aborted ? "cancelled" : isLate ? "limit" : "error");
  if (!isLate) return;
  const [first] = opts.blueprint.nodes;
  const hit = { limit: "wall", nodeId: first?.id ?? "", allowed: clock.wall, used: Math.round(clock.elapsed) } as const;
  report.limitsHit.push(hit);
  await recorder.record({ type: "limit.hit", ...hit });
}

async function runNodes(
  opts: SessionOptions,
  recorder: RunRecorder,
  sandbox: Sandbox,
  signal: AbortSignal,
  clock: WallClock,
): Promise<{ outcome: RunOutcome; saved: string | undefined }> {
  const { plan, resume, secrets, directory } = opts;
  const context = contextOf(opts, sandbox);
  const startAt = resume === undefined ? plan.from : (resume.startAt ?? null);
  const { snapshotId } = resume ?? {};
  const { env: sandboxEnv = {} } = opts.sandboxOptions;
  const { agents } = needsOf(opts.blueprint, {
    ...defined({ agents: opts.agents }),
    ...plan,
    env: { ...sandboxEnv, ...plan.env },
  });
  const sessionFolders = sessionFoldersOf(agents);
  const checkpointer = new Checkpointer(
    { directory, recorder, sessionFolders, ...defined({ snapshotId, secrets: opts.hidden.secrets }) },
    sandbox,
    context,
  );
  const lostSessions = resume === undefined ? [] : await bringSessions(opts, resume, sandbox, agents);
  // Without a look in time, the files are saved as if they had changed.
  if (resume === undefined) await clock.bounded("saving", () => checkpointer.start()).catch(() => undefined);
  else await startAgain(opts, checkpointer, resume);
  const { limits, agent, model, until, installs } = plan;
  const { network } = plan.sandbox;
  const outcome = await runBlueprint(opts.blueprint, {
    sandbox,
    context,
    secrets,
    signal,
    wallLeft: clock.leftForNodes,
    onEvent: (event) => recorder.record(event),
    onOutput: (output) => recorder.recordOutput(output),
    checkpoint: (at) => checkpointer.save(at),
    sandboxEnv,
    ...defined({ limits, agents: opts.agents, agent, model, startAt, until, installs, network, lostSessions }),
  });
  return { outcome, saved: checkpointer.fresh };
}

/** Brings the agents' sessions back that an earlier session saved; names the nodes whose session is gone. */
async function bringSessions(
  { directory, blueprint: { nodes } }: SessionOptions,
  { startAt, results }: ResumePoint,
  sandbox: Sandbox,
  agents: readonly AgentNeed[],
): Promise<string[]> {
  const first = startAt === undefined ? nodes.length : nodes.findIndex(({ id }) => id === startAt);
  const found = await readSessions(directory, first);
  const isBack = found !== undefined && (await unpackSessions(sandbox, found.archive).then(succeed, fail));
  const isSamePlace = found?.workDir === sandbox.workDir;
  const saved = agents.filter(({ driver }) => isBack && canContinue(driver, isSamePlace));
  return Object.keys(results).filter((id) => !saved.some(({ nodeId }) => nodeId === id));
}

const succeed = (): boolean => true;
const fail = (): boolean => false;

/** Removes what an earlier session saved of the nodes that run again. */
async function startAgain(
  { directory, blueprint: { nodes } }: SessionOptions,
  checkpointer: Checkpointer,
  { startAt, snapshotId, sandboxId, patch }: ResumePoint,
): Promise<void> {
  const first = startAt === undefined ? nodes.length : nodes.findIndex(({ id }) => id === startAt);
  const before = await snapshotsOf(directory);
  const isSaved = snapshotId !== undefined || (sandboxId === undefined && patch === undefined);
  await checkpointer.startAgain(nodes, first, isSaved);
  await forgetCheckpoints(directory, first);
  await forgetEndState(directory);
  const after = await snapshotsOf(directory);
  for (const id of before) {
    if (!after.has(id)) await deleteSnapshot(id).catch(() => undefined);
  }
}

function contextOf({ plan, blueprint, spec, resume }: SessionOptions, sandbox: Sandbox): RunContext {
  const { runId, intent, repo, branch, push, specPath, inputs = {}, env = {} } = plan;
  const { workDir, backend: sandboxType } = sandbox;
  return {
    ...{ runId, blueprint: blueprint.name, workDir, intent, repo, branch, push, sandboxType },
    ...defined({ specPath, spec }),
    ...{ inputs, env, results: { ...resume?.results } },
  };
}

function firstReport({ plan, resume }: SessionOptions): RunReport {
  const { runId, repo, intent, push, branch, base, baseCommit } = plan;
  return {
    schemaVersion: 1,
    ...{ runId, blueprint: plan.blueprint.name, repo, intent },
    status: "running",
    exitCode: 0,
    nodes: Object.values(resume?.results ?? {}),
    startedAt: isoTime(),
    totalDurationMs: 0,
    tokenUsage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    cost: { usd: null, unpriced: [] },
    limitsHit: [],
    ...{ push, branch, ...defined({ base, baseCommit }) },
    ...(plan.secrets && { secrets: [...plan.secrets] }),
    warnings: [],
    version: plan.gloveboxVersion,
  };
}

function takeOver(report: RunReport, outcome: RunOutcome): void {
  const logged = new Map(report.nodes.map((node) => [node.id, node]));
  report.nodes = outcome.nodes.map((node) => {
    const { stdoutPath, stderrPath } = logged.get(node.id) ?? {};
    return { ...node, ...(stdoutPath && { stdoutPath }), ...(stderrPath && { stderrPath }) };
  });
  report.tokenUsage = outcome.tokenUsage;
  report.cost = outcome.cost;
  report.limitsHit = outcome.limitsHit;
  for (const warning of outcome.warnings) if (!report.warnings.includes(warning)) report.warnings.push(warning);
  if (outcome.error !== undefined) report.error = outcome.error;
  const commit = outcome.nodes.findLast((node) => node.commit !== undefined)?.commit;
  if (commit !== undefined) report.headCommit = commit;
}

function setStatus({ signal }: SessionOptions, report: RunReport, status: RunStatus): void {
  report.status = status;
  report.exitCode = exitCodeOf(status, report.pushResult, signal);
}

function toRunError(error: unknown): RunError {
  const { code, message, retryable, hint } = toSandboxError(error);
  return { code, message: redact(message), retryable, ...(hint !== undefined && { hint }) };
}

/** The last event, all forms of the report, and the reporters. */
async function conclude(opts: SessionOptions, recorder: RunRecorder, took: number): Promise<void> {
  const { directory } = opts;
  const { report } = recorder;
  if (report.status === "running") setStatus(opts, report, "error");
  report.finishedAt = isoTime();
  report.totalDurationMs = Math.round(took);
  const { exitCode, totalDurationMs, error } = report;
  const status = report.status as RunStatus;
  await recorder.record({ type: "run.finished", status, exitCode, totalDurationMs, ...(error && { error }) });
  try {
    writeReports(opts, report);
  } catch (error) {
    report.warnings.push(`the report could not be written: ${toSandboxError(error).message}`);
  }
  recorder.saveReport();
  await recorder.finish();
  try {
    releaseRun(directory);
  } catch {
    // Once this process has ended, nobody takes the run for one that goes on.
  }
}

function writeReports({ directory, hidden }: SessionOptions, report: RunReport): void {
  const patch = readFileSync(directory.state("changes.patch"), "utf8");
  writePublic(directory, "report.md", redact(reportMarkdown(report), hidden));
  writePublic(directory, "report.html", redact(reportHtml(report, patch), hidden));
}
