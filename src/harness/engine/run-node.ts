import { setTimeout } from "node:timers/promises";
import { evaluate, isTrue, parseExpression } from "../expression.js";
import type { AgentNode, BlueprintNode, GateRepair, NodeAttempt, NodeReport, RetryPolicy, RunError } from "../types.js";
import { type StepOutcome, toOutcome } from "./failure.js";
import { OutputPipe } from "./output-pipe.js";
import { type AgentJob, runAgent } from "./run-agent.js";
import { runCommit } from "./run-commit.js";
import { runGate } from "./run-gate.js";
import type { RunState } from "./run-state.js";
import { runStep } from "./run-step.js";
import { createScope } from "./scope.js";

/** What a node's own run adds to its report. */
type Outcome = StepOutcome & Partial<NodeReport>;

/** Runs one node: its condition, its tries, its events. Never throws. */
export async function runNode(state: RunState, node: BlueprintNode): Promise<NodeReport> {
  const { id, name, kind } = node;
  const reason = await reasonToSkip(state, node).catch((error: unknown) => toOutcome(error, state));
  if (typeof reason === "string") {
    await state.emit({ type: "node.skipped", nodeId: id, name, kind, reason });
    return { ...blank(node), status: "skipped", reason };
  }
  return await report(state, node, { retry: node.retry }, () => {
    return reason === undefined ? runOnce(state, node) : Promise.resolve(reason);
  });
}

/** Why a node does not run; undefined when it does. */
async function reasonToSkip(state: RunState, { when, needs }: BlueprintNode): Promise<string | undefined> {
  const { results } = state.context;
  const idle = needs.find((need) => results[need]?.status === "skipped");
  if (idle !== undefined) return `it needs ${idle}, which was skipped`;
  if (when === undefined) return undefined;
  const holds =
    typeof when === "function"
      ? await when(state.context)
      : isTrue(await evaluate(parseExpression(when), createScope(state)));
  return holds ? undefined : typeof when === "function" ? "its condition does not hold" : `${when} does not hold`;
}

async function runOnce(state: RunState, node: BlueprintNode): Promise<Outcome> {
  switch (node.kind) {
    case "command": {
      const pipe = new OutputPipe(
        (stream, bytes) => state.emitOutput({ nodeId: node.id, stream, bytes }),
        state.hidden,
      );
      const outcome = await runStep(state, node, pipe);
      return { ...outcome, output: pipe.kept.text, outputTruncated: pipe.kept.truncated };
    }
    case "agent":
      return await runAgent(state, jobOf(node));
    case "gate":
      return await runGate(state, node, (repair, round, failures) => runRepair(state, node, repair, round, failures));
    case "commit":
      return await runCommit(state, node);
  }
}

function jobOf(node: AgentNode): AgentJob {
  const { id, env, secrets, cwd, timeout } = node;
  return {
    task: node,
    nodeId: id,
    env,
    secrets,
    ...(cwd !== undefined && { cwd }),
    ...(timeout !== undefined && { timeout }),
  };
}

/** A repair is a node of its own, below the gate. */
async function runRepair(
  state: RunState,
  gate: Extract<BlueprintNode, { kind: "gate" }>,
  repair: GateRepair,
  round: number,
  failures: string,
): Promise<NodeReport> {
  const id = `${gate.id}/fix-${round}`;
  const job: AgentJob = {
    task: repair,
    nodeId: id,
    parentId: gate.id,
    env: { ...gate.env, ...repair.env },
    secrets: [...gate.secrets, ...repair.secrets],
    more: { gate: { failures, round } },
    ...(gate.cwd !== undefined && { cwd: gate.cwd }),
  };
  const name = `fix ${round} of ${repair.max}`;
  return await report(state, { id, name, kind: "agent" }, { retry: gate.retry, parentId: gate.id }, () =>
    runAgent(state, job),
  );
}

/** Tells of the start and the end of a node, and tries again where the infrastructure failed. */
async function report(
  state: RunState,
  node: Pick<NodeReport, "id" | "name" | "kind"> & { continueOnError?: boolean },
  { retry, parentId }: { retry: RetryPolicy; parentId?: string },
  run: () => Promise<Outcome>,
): Promise<NodeReport> {
  const { id: nodeId, name, kind } = node;
  const ids = { nodeId, ...(parentId !== undefined && { parentId }) };
  const made = blank(node);
  const began = performance.now();
  await state.emit({ type: "node.started", ...ids, name, kind, attempt: 1 });
  const attempts: NodeAttempt[] = [];
  let outcome: Outcome;
  for (;;) {
    const startedAt = performance.now();
    outcome = await run().catch((error: unknown): Outcome => toOutcome(error, state));
    const { status, error } = outcome;
    const durationMs = Math.round(performance.now() - startedAt);
    attempts.push({ attempt: attempts.length + 1, status, durationMs, ...(error !== undefined && { error }) });
    if (!(await waitToRetry(state, ids, retry, attempts.length, error))) break;
  }
  const { timedOut: _, ...result } = outcome;
  const node_: NodeReport = {
    ...made,
    ...result,
    durationMs: Math.round(performance.now() - began),
    attempt: attempts.length,
    ...(attempts.length > 1 && { attempts }),
    ...(outcome.status === "failure" && node.continueOnError === true && { tolerated: true }),
  };
  await state.emit({ type: "node.finished", ...ids, result: node_ });
  return node_;
}

/** Waits before another try; false when there is none. */
async function waitToRetry(
  state: RunState,
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
  const startedAt = new Date().toISOString();
  return {
    id,
    name,
    kind,
    status: "success",
    output: "",
    outputTruncated: false,
    durationMs: 0,
    attempt: 1,
    startedAt,
  };
}
