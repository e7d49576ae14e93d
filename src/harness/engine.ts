import { SandboxError } from "../../contracts/errors.js";
import { writeHomeFiles } from "./engine/agent-home.js";
import { EngineState } from "./engine/engine-state.js";
import { preflight } from "./engine/preflight.js";
import { runInstall } from "./engine/run-install.js";
import { runNode } from "./engine/run-node.js";
import { readHomeFiles } from "./home-files.js";
import { needsOf } from "./needs.js";
import { nodesBetween } from "./node-range.js";
import { setupNode, toRunError } from "./nodes.js";
import type { Blueprint, BlueprintNode, EngineOptions, NodeReport, RunError, RunLimits, RunOutcome } from "./types.js";
import { untilAborted } from "./until-aborted.js";

/** Failures that are not those of the code which was worked on. */
const ENVIRONMENT_CODES = [
  ...["backend_lost", "closed", "tampered", "unavailable", "internal", "no_space", "missing_dependency", "unsupported"],
  ...["unauthenticated", "quota", "rate_limit", "network", "crash", "permission_denied"],
];

/**
 * Runs the nodes of a blueprint in a sandbox, one after the other, and reports all that happens as events. It writes no
 * files and opens no sandbox. Wrong options throw before the first event; after that everything is in the outcome.
 */
export async function runBlueprint(blueprint: Blueprint, options: EngineOptions): Promise<RunOutcome> {
  const limits: RunLimits = { ...blueprint.limits, ...options.limits };
  const { agents } = needsOf(blueprint, { ...options, limits, env: { ...options.sandboxEnv, ...options.context.env } });
  const { startAt, until } = options;
  const nodes = startAt === null ? [] : nodesBetween(blueprint, startAt, until, "startAt");
  const state = new EngineState(limits, options, blueprint.sandbox);
  const reports: NodeReport[] = takeOver(blueprint, state, options);
  try {
    const look = (): Promise<void> => preflight(state, nodes, agents);
    const error = nodes.length === 0 ? undefined : await prepare(blueprint, state, options, look, reports);
    if (error !== undefined) return await conclude(state, reports, nodes[0], undefined, error);
    for (const node of nodes) {
      if (state.stopped !== undefined) return await conclude(state, reports, node, undefined);
      state.nodeId = node.id;
      const report = await runNode(state, node);
      reports.push(report);
      state.context.results[node.id] = report;
      if (report.status === "limit") await reportWall(state, node);
      if (state.sandboxLost) await state.emit({ type: "sandbox.lost", message: report.error?.message ?? "" });
      else await checkpoint(options, state, report, blueprint.nodes.indexOf(node));
      const isOver = !["success", "skipped"].includes(report.status) && report.tolerated !== true;
      if (isOver || state.sandboxLost) return await conclude(state, reports, node, report);
    }
    return await conclude(state, reports, nodes.at(-1), undefined);
  } finally {
    state.end();
  }
}

/** What must be true before the first node: all is installed, the setup is done, and what the nodes rely on is there. */
async function prepare(
  { sandbox }: Blueprint,
  state: EngineState,
  { installs = [] }: EngineOptions,
  look: () => Promise<void>,
  reports: NodeReport[],
): Promise<RunError | undefined> {
  const through = async (steps: readonly (() => Promise<NodeReport>)[]): Promise<RunError | undefined> => {
    for (const run of steps) {
      const report = await run();
      reports.push(report);
      if (report.status !== "success" && report.status !== "skipped") {
        return report.error ?? { code: "aborted", message: "it was ended while it was set up", retryable: false };
      }
    }
    return undefined;
  };
  try {
    const notInstalled = await through(installs.map((step) => () => runInstall(state, step)));
    if (notInstalled !== undefined) return notInstalled;
    // After the scripts of dependencies: a login is not for them.
    await inTime(state, () => writeHomeFiles(state.sandbox, readHomeFiles(sandbox.home), state.signal));
    const notSetUp = await through(
      sandbox.setup.map((run, at) => () => runNode(state, setupNode(`setup-${at + 1}`, run))),
    );
    if (notSetUp !== undefined) return notSetUp;
    await inTime(state, look);
    return undefined;
  } catch (error) {
    return toRunError(error, state);
  }
}

/** What an earlier run has done of the nodes before the first, and what it used. */
function takeOver({ nodes }: Blueprint, state: EngineState, { startAt }: EngineOptions): NodeReport[] {
  const first = startAt === null ? nodes.length : nodes.findIndex(({ id }) => id === startAt);
  const before = nodes.slice(0, Math.max(0, first));
  return before.flatMap(({ id }) => {
    const known = state.context.results[id];
    if (known === undefined) return [];
    for (const node of [known, ...(known.children ?? [])]) {
      if (node.agent !== undefined) state.account(node.id, node.agent);
      if (node.attempts?.some(({ costUsd }) => costUsd === null) === true) state.noteUnpriced(node.id);
    }
    return [{ ...known, reused: true }];
  });
}

async function checkpoint(
  { checkpoint: save }: EngineOptions,
  state: EngineState,
  node: NodeReport,
  index: number,
): Promise<void> {
  try {
    await inTime(state, async () => save?.({ node, index }));
  } catch (error) {
    await state.warn(`the state after ${node.id} could not be saved: ${toRunError(error, state).message}`, node.id);
  }
}

/** Waits for what belongs to the run and is no node, until the run must end. */
async function inTime(state: EngineState, work: () => Promise<void>): Promise<void> {
  const late = (): SandboxError => new SandboxError("unavailable", "the run had to end in the meantime");
  await untilAborted(state.signal, late, work);
}

/** Reports that the wall ended a node, unless another limit of that node did. */
async function reportWall(state: EngineState, node: BlueprintNode | undefined): Promise<void> {
  const { id = "" } = node ?? {};
  if (state.limitsHit.some(({ limit, nodeId }) => limit === "wall" || nodeId.startsWith(id))) return;
  await state.hit({ limit: "wall", nodeId: id, allowed: state.limits.wall, used: Math.round(state.elapsed) });
}

/** `at` is the node that ran last or comes next. */
async function conclude(
  state: EngineState,
  nodes: NodeReport[],
  at: BlueprintNode | undefined,
  last: NodeReport | undefined,
  failure?: RunError,
): Promise<RunOutcome> {
  const error = failure ?? last?.error;
  const status = statusOf(state, last, error);
  if (status === "limit") await reportWall(state, at);
  return {
    status,
    nodes,
    tokenUsage: state.usage,
    cost: { usd: state.costUsd, unpriced: state.unpriced },
    limitsHit: state.limitsHit,
    warnings: state.warnings,
    durationMs: Math.round(state.elapsed),
    sandboxLost: state.sandboxLost,
    ...(last !== undefined && { endedBy: last.id }),
    ...(error !== undefined && { error }),
  };
}

function statusOf(state: EngineState, last: NodeReport | undefined, error: RunError | undefined): RunOutcome["status"] {
  if (last?.status === "cancelled" || state.stopped === "cancelled") return "cancelled";
  if (last?.status === "limit" || state.stopped === "wall") return "limit";
  if (error === undefined) return last === undefined ? "success" : "failed";
  return last === undefined || state.sandboxLost || ENVIRONMENT_CODES.includes(error.code) ? "error" : "failed";
}
