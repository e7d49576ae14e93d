import { posix } from "node:path";
import { defined } from "../../util/defined.js";
import { accessOf, driverOf, noTokens } from "../agents.js";
import { type AgentJob, type AgentOutcome, toOutcome, toRunError } from "../nodes.js";
import type {
  AgentCommand,
  AgentDriver,
  AgentHost,
  AgentReader,
  AgentReport,
  AgentRequest,
  AgentSignal,
  AgentVerdict,
  LimitHit,
} from "../types.js";
import { writeHomeFiles } from "./agent-home.js";
import { AgentProcess } from "./agent-process.js";
import { type AgentBounds, AgentWatch } from "./agent-watch.js";
import type { EngineState } from "./engine-state.js";
import { missingAgent } from "./missing-agent.js";
import { OutputPipe } from "./output-pipe.js";
import { environmentOf } from "./run-step.js";
import { renderText } from "./scope.js";

const RETRYABLE = ["rate_limit", "network", "crash"];
const STDERR_KEPT = 4_000;
const PROGRAM_MISSING = 127;

/** Runs an agent to its end or to its limits. Never throws: what goes wrong is the outcome. */
export async function runAgent(state: EngineState, job: AgentJob): Promise<AgentOutcome> {
  const driver = driverOf(job.task, state.choice);
  const bounds = boundsOf(state, job);
  const agent: AgentReport = { name: driver.name, costUsd: null };
  const spent = spentLimit(bounds, state, job);
  if (spent !== undefined) {
    await state.hit(spent);
    return { status: "limit", agent, output: "" };
  }
  try {
    return await follow(state, job, driver, bounds);
  } catch (error) {
    return { ...toOutcome(error, state), agent, output: "" };
  }
}

async function follow(
  state: EngineState,
  job: AgentJob,
  driver: AgentDriver,
  bounds: AgentBounds,
): Promise<AgentOutcome> {
  const { nodeId, parentId } = job;
  const ids = { nodeId, ...(parentId !== undefined && { parentId }) };
  let process: AgentProcess | undefined;
  const request = await requestOf(state, job, bounds);
  const before = request.sessionId === undefined ? undefined : state.sessions.get(request.sessionId);
  const dialog = driver.dialog?.(request, await hostOf(state, job, (line) => process?.send(line)));
  const reader = dialog ?? driver.reader(before);
  const pipe = new OutputPipe(state, ids);
  const isText = driver.name === "command" && job.task.output !== "events";
  let stderr = "";
  const watch = new AgentWatch(driver.name, bounds, state, (grace) => {
    dialog?.cancel();
    process?.stop(grace);
  });
  const take = (signals: readonly AgentSignal[]): readonly AgentSignal[] => {
    watch.take(signals);
    if (dialog !== undefined && watch.verdict !== undefined) process?.leave();
    return signals;
  };
  try {
    const command = driver.command(request);
    await writeHomeFiles(state.sandbox, ownFiles(state, command), state.signal);
    process = await AgentProcess.start(state.sandbox, {
      command,
      isDialog: dialog !== undefined,
      env: await environmentOf(state, { env: job.env, secrets: [...job.secrets, ...keysOf(driver, request)] }),
      ...(job.cwd !== undefined && { cwd: job.cwd }),
      onStdout: (chunk) => pipe.write(isText ? "stdout" : "transcript", chunk),
      onStderr: async (chunk) => {
        stderr = (stderr + Buffer.from(chunk).toString("utf8")).slice(-STDERR_KEPT);
        await pipe.write("stderr", chunk);
      },
      onLine: async (line) => {
        for (const signal of withUsage(take(reader.line(line)))) await emitSignal(state, ids, signal, watch);
      },
      ...(dialog !== undefined && { onOverlong: () => void take(dialog.overlong()) }),
    });
    dialog?.start();
    if (watch.cause !== undefined) process.stop();
    const exit = await process.ended;
    await pipe.end();
    return await conclude(state, job, driver, watch, reader, { ...exit, stderr });
  } finally {
    watch.end();
    await dialog?.close();
  }
}

/** The files that a driver writes. One that the blueprint has in its `home` stays as it is there. */
function ownFiles({ home }: EngineState, { homeFiles = {} }: AgentCommand): Record<string, string> {
  return Object.fromEntries(Object.entries(homeFiles).filter(([path]) => !home.has(path)));
}

/** The variables with keys for the service that the node has chosen. */
function keysOf(driver: AgentDriver, { env = {}, model }: AgentRequest): string[] {
  const { secrets, keys = {} } = accessOf(driver, { env, ...defined({ model }) });
  return secrets.flat().flatMap((name) => [name, ...(keys[name]?.with ?? []), ...(keys[name]?.maybeWith ?? [])]);
}

/** What an agent that is talked with may use: no secret that it could pass on to what it starts. */
async function hostOf(state: EngineState, { cwd, env }: AgentJob, send: (line: string) => void): Promise<AgentHost> {
  const { sandbox } = state;
  return {
    sandbox,
    cwd: posix.resolve(sandbox.workDir, cwd ?? "."),
    env: await environmentOf(state, { env, secrets: [] }),
    send,
  };
}

/** Says what became of an agent that ended, and adds what it used to the run. */
async function conclude(
  state: EngineState,
  { nodeId }: AgentJob,
  driver: AgentDriver,
  watch: AgentWatch,
  reader: AgentReader,
  exit: { exitCode: number; signal?: string; stderr: string },
): Promise<AgentOutcome> {
  const { cause } = watch;
  const isMissing = cause === undefined && watch.verdict === undefined && exit.exitCode === PROGRAM_MISSING;
  // One that ended while it worked on has not done what it said last.
  const isCutOff = cause === undefined && !watch.isDone && exit.exitCode !== 0;
  const verdict = (isCutOff ? undefined : watch.verdict) ?? reader.end(exit);
  const agent = account(state, nodeId, driver, watch, verdict);
  const output = state.hide(verdict.text, 50 * 1024);
  const base = { agent, output, exitCode: exit.exitCode };
  if (cause === "cancelled") return { ...base, status: "cancelled" };
  const limit = cause === undefined || cause === "finished" ? verdict.limit : cause;
  if (limit !== undefined) {
    await state.hit(watch.limitHit(limit, nodeId));
    return { ...base, status: "limit" };
  }
  if (isMissing) return { ...base, status: "failure", error: toRunError(missingAgent(driver), state) };
  if (!verdict.isError) return { ...base, status: "success" };
  const failure = verdict.failure ?? "agent_error";
  agent.failure = failure;
  return {
    ...base,
    status: "failure",
    error: { code: failure, message: state.hide(verdict.text, 2_000), retryable: RETRYABLE.includes(failure) },
  };
}

function account(
  state: EngineState,
  nodeId: string,
  driver: AgentDriver,
  watch: AgentWatch,
  verdict: AgentVerdict,
): AgentReport {
  const turns = verdict.turns ?? (watch.turns > 0 ? watch.turns : undefined);
  const { usage, costUsd } = watch;
  const version = state.versions.get(driver.name);
  const report: AgentReport = {
    ...watch.report,
    costUsd,
    ...defined({ turns, version, usage }),
    ...(verdict.terminalReason !== undefined && { terminalReason: state.hide(verdict.terminalReason, 200) }),
  };
  state.account(nodeId, report);
  return report;
}

/** What is left of the limits: of the run's, and of the node's own after earlier tries. */
function boundsOf(state: EngineState, { task, timeout, nodeId }: AgentJob): AgentBounds {
  const { limits } = state;
  const spent = state.spentBy(nodeId);
  const least = (...values: (number | undefined)[]): number | undefined => {
    const known = values.filter((value) => value !== undefined);
    return known.length === 0 ? undefined : Math.min(...known);
  };
  const left = (limit: number | undefined, used: number): number | undefined =>
    limit === undefined ? undefined : limit - used;
  return {
    wall: least(task.limits.wall, timeout),
    idle: task.limits.idle ?? limits.idle,
    costUsd: least(left(task.limits.costUsd, spent.costUsd), left(limits.costUsd, state.costUsd ?? 0)),
    turns: least(left(task.limits.turns, spent.turns), left(limits.turns, state.turns)),
  };
}

/** A limit that earlier agents, or earlier tries of this one, have used up. */
function spentLimit(bounds: AgentBounds, state: EngineState, { task, nodeId }: AgentJob): LimitHit | undefined {
  const limit = bounds.costUsd !== undefined && bounds.costUsd <= 0 ? "cost" : "turns";
  const name = limit === "cost" ? "costUsd" : "turns";
  if ((bounds[name] ?? 1) > 0) return undefined;
  const own = task.limits[name];
  const spent = state.spentBy(nodeId)[name];
  if (own !== undefined && spent >= own) return { limit, nodeId, allowed: own, used: spent };
  return { limit, nodeId, allowed: state.limits[name] ?? 0, used: state[name] ?? 0 };
}

async function requestOf(
  state: EngineState,
  { task, more, env, nodeId, secrets }: AgentJob,
  bounds: AgentBounds,
): Promise<AgentRequest> {
  const model = state.choice.model ?? task.model;
  const sessionId = await sessionOf(state, task, nodeId);
  const { tools, args, mcp } = task;
  return {
    prompt: await renderText(state, task.prompt, more),
    env: { ...state.allSandboxEnv, ...(await environmentOf(state, { env, secrets: [] })) },
    ...(task.systemPrompt !== undefined && { systemPrompt: await renderText(state, task.systemPrompt, more) }),
    ...(secrets.length > 0 && { secretNames: secrets }),
    ...defined({ model, tools, args, mcp, sessionId, maxCostUsd: bounds.costUsd, maxTurns: bounds.turns }),
  };
}

/** The session that a task continues. One that is gone is not continued, and the report says so. */
async function sessionOf(state: EngineState, task: AgentJob["task"], nodeId: string): Promise<string | undefined> {
  if (task.continue === undefined) return undefined;
  const sessionId = state.context.results[task.continue]?.agent?.sessionId;
  if (sessionId === undefined || !state.lostSessions.has(task.continue)) return sessionId;
  await state.warn(`${nodeId} starts a new session: that of ${task.continue} was not saved`, nodeId);
  return undefined;
}

/** A turn that comes without a count is shown with the last one. */
function withUsage(signals: readonly AgentSignal[]): readonly AgentSignal[] {
  const has = (type: AgentSignal["type"]): boolean => signals.some((signal) => signal.type === type);
  return has("turn") && !has("usage") ? [{ type: "usage" }, ...signals] : signals;
}

async function emitSignal(
  state: EngineState,
  ids: { nodeId: string; parentId?: string },
  signal: AgentSignal,
  { costUsd, turns, usage = noTokens() }: AgentWatch,
): Promise<void> {
  switch (signal.type) {
    case "message":
      return await state.emit({ type: "agent.message", ...ids, text: state.hide(signal.text) });
    case "tool_call":
      return await state.emit({
        type: "agent.tool_call",
        ...ids,
        tool: state.hide(signal.tool, 200),
        summary: state.hide(signal.summary, 1_000),
      });
    case "tool_result":
      return await state.emit({
        type: "agent.tool_result",
        ...ids,
        isError: signal.isError,
        ...(signal.tool !== undefined && { tool: state.hide(signal.tool, 200) }),
      });
    case "usage":
      return await state.emit({ type: "agent.usage", ...ids, usage: signal.usage ?? usage, costUsd, turns });
    default:
      return;
  }
}
