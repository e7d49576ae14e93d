import { setTimeout } from "node:timers/promises";
import { networkHint, saysUnresolved } from "../../sandbox/host.js";
import { defined } from "../../util/defined.js";
import { isoTime } from "../../util/iso-time.js";
import { evaluate, isTrue, parseExpression } from "../expression.js";
import { kindOf, type NodeOutcome, type NodeRun, type StepOutcome, toOutcome } from "../nodes.js";
import type { AgentReport, BlueprintNode, NodeAttempt, NodeReport, RetryPolicy, RunError } from "../types.js";
import { ofAllTries } from "./all-tries.js";
import type { EngineState } from "./engine-state.js";
import { OutputPipe } from "./output-pipe.js";
import { runAgent } from "./run-agent.js";
import { runStep } from "./run-step.js";
import { createScope, renderMessage } from "./scope.js";

/** Runs one node: its condition, its tries, its events. Never throws. */
export async function runNode(state: EngineState, node: BlueprintNode): Promise<NodeReport> {
  const { id, name, kind } = node;
  const reason = await reasonToSkip(state, node).catch((error: unknown) => toOutcome(error, state));
  if (typeof reason === "string") {
    await state.emit({ type: "node.skipped", nodeId: id, name, kind, reason });
    return { ...blank(node), status: "skipped", reason };
  }
  return await report(state, node, { retry: node.retry }, () => {
    return reason === undefined ? kindOf(node).run(toNodeRun(state), node) : Promise.resolve(reason);
  });
}

/** Why a node does not run; undefined when it does. */
async function reasonToSkip(state: EngineState, { when, needs }: BlueprintNode): Promise<string | undefined> {
  const { results } = state.context;
  const idle = needs.find((need) => results[need]?.status === "skipped");
  if (idle !== undefined) return `it needs ${idle}, which was skipped`;
  if (when === undefined) return undefined;
  const isTrueNow =
    typeof when === "function"
      ? await when(state.context)
      : isTrue(await evaluate(parseExpression(when), createScope(state)));
  return isTrueNow ? undefined : typeof when === "function" ? "its condition is false" : `${when} is false`;
}

/** What the engine does for a kind. */
function toNodeRun(state: EngineState): NodeRun {
  return {
    state,
    async step(step, ids) {
      const pipe = new OutputPipe(state, ids);
      const outcome = await runStep(state, step, pipe);
      return { ...withNetworkHint(state, outcome, pipe.kept.output), ...pipe.kept };
    },
    agent: (job) => runAgent(state, job),
    child: (node, opts, run) => report(state, node, opts, run),
    async print(nodeId, stream, text) {
      const pipe = new OutputPipe(state, { nodeId });
      await pipe.write(stream, Buffer.from(text));
      await pipe.end();
      return pipe.kept;
    },
    renderMessage: (text) => renderMessage(state, text),
  };
}

/** Adds what to do to a failure whose cause is a name that the network rule hides. */
function withNetworkHint({ network }: EngineState, outcome: StepOutcome, output: string): StepOutcome {
  const { error } = outcome;
  if (error === undefined || error.hint !== undefined || !saysUnresolved(output)) return outcome;
  const hint = networkHint(network);
  return hint === undefined ? outcome : { ...outcome, error: { ...error, hint } };
}

/** Reports the start and the end of a node, and tries again where the infrastructure failed. */
async function report(
  state: EngineState,
  node: Pick<NodeReport, "id" | "name" | "kind"> & { continueOnError?: boolean },
  { retry, parentId }: { retry: RetryPolicy; parentId?: string },
  run: () => Promise<NodeOutcome>,
): Promise<NodeReport> {
  const { id: nodeId, name, kind } = node;
  const ids = { nodeId, ...(parentId !== undefined && { parentId }) };
  const made = blank(node);
  const nodeStart = performance.now();
  await state.emit({ type: "node.started", ...ids, name, kind, attempt: 1 });
  const attempts: NodeAttempt[] = [];
  const agents: AgentReport[] = [];
  let outcome: NodeOutcome;
  for (;;) {
    const startedAt = performance.now();
    outcome = await run().catch((error: unknown): NodeOutcome => toOutcome(error, state));
    const { status, error, agent } = outcome;
    const durationMs = Math.round(performance.now() - startedAt);
    const costUsd = agent?.costUsd;
    attempts.push({ attempt: attempts.length + 1, status, durationMs, ...defined({ error, costUsd }) });
    if (agent !== undefined) agents.push(agent);
    if (!(await waitToRetry(state, ids, retry, attempts.length, error))) break;
  }
  const { timedOut: _, ...result } = outcome;
  const node_: NodeReport = {
    ...made,
    ...result,
    ...defined({ agent: ofAllTries(agents) }),
    durationMs: Math.round(performance.now() - nodeStart),
    attempt: attempts.length,
    ...(attempts.length > 1 && { attempts }),
    ...(outcome.status === "failure" && node.continueOnError === true && { tolerated: true }),
  };
  await state.emit({ type: "node.finished", ...ids, result: node_ });
  return node_;
}

/** Waits before another try; false when there is none. */
async function waitToRetry(
  state: EngineState,
  ids: { nodeId: string; parentId?: string },
  { max, backoff, on }: RetryPolicy,
  tries: number,
  error: RunError | undefined,
): Promise<boolean> {
  const cause = on.find((known) => known === error?.code);
  if (cause === undefined || tries > max || state.sandboxLost) return false;
  const delayMs = backoff * 2 ** (tries - 1);
  if (state.stopped !== undefined || state.elapsed + delayMs >= state.wallLeft) return false;
  await state.emit({ type: "retry.scheduled", ...ids, reason: cause, delayMs, attempt: tries + 1 });
  try {
    await setTimeout(delayMs, undefined, { signal: state.signal });
    return true;
  } catch {
    return false; // cancelled while it waited; the last try is the result
  }
}

function blank({ id, name, kind }: Pick<NodeReport, "id" | "name" | "kind">): NodeReport {
  const startedAt = isoTime();
  const nothing = { status: "success", output: "", outputTruncated: false, durationMs: 0 } as const;
  return { id, name, kind, ...nothing, attempt: 1, startedAt };
}
