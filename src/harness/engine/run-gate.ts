import { createPathMatcher } from "../../util/glob.js";
import { changedPaths, fingerprint } from "../changed-paths.js";
import type { CheckResult, GateCheck, GateNode, GateRepair, NodeReport, NodeStatus, RunError } from "../types.js";
import { BrokenStep, type StepOutcome, toOutcome } from "./failure.js";
import { OutputPipe } from "./output-pipe.js";
import type { RunState } from "./run-state.js";
import { runStep } from "./run-step.js";

/** What became of a gate. */
export interface GateOutcome extends StepOutcome {
  checks: CheckResult[];
  rounds: number;
  children: NodeReport[];
  output: string;
}

/** Asks an agent to repair; the report is a child of the gate's. */
export type Repair = (repair: GateRepair, round: number, failures: string) => Promise<NodeReport>;

const FAILURE_BYTES = 6_000;

/** Runs the checks of a gate, and lets an agent repair what is red, as often as the gate allows. */
export async function runGate(state: RunState, node: GateNode, repair: Repair): Promise<GateOutcome> {
  const children: NodeReport[] = [];
  let checks: CheckResult[] = [];
  const end = (status: NodeStatus, error?: RunError): GateOutcome => ({
    status,
    checks,
    rounds: children.length,
    children,
    output: checks.map(lineOf).join("\n"),
    ...(error !== undefined && { error }),
  });
  try {
    for (;;) {
      checks = await runChecks(state, node, children.length);
      if (state.stopped !== undefined) return end(state.stopped === "cancelled" ? "cancelled" : "limit");
      const red = checks.filter(({ status }) => status !== "success");
      if (red.length === 0) return end("success");
      const names = red.map(({ id }) => id).join(", ");
      const { onFail } = node;
      if (onFail === undefined || children.length >= onFail.max) {
        const tries = onFail === undefined ? "" : `, after ${children.length} of ${onFail.max} repairs`;
        return end("failure", gateFailed(`not passed: ${names}${tries}`));
      }
      const before = onFail.stopIfNoChange ? await fingerprint(state.sandbox) : undefined;
      const child = await repair(onFail, children.length + 1, describe(red));
      children.push(child);
      if (child.status === "cancelled" || child.status === "limit") return end(child.status);
      if (state.sandboxLost) return end("failure", child.error);
      const isUnchanged = before !== undefined && before === (await fingerprint(state.sandbox));
      if (isUnchanged) {
        return end("failure", child.error ?? gateFailed(`not passed: ${names}; the repair changed nothing`));
      }
    }
  } catch (error) {
    return { ...end("failure"), ...toOutcome(error, state) };
  }
}

function gateFailed(message: string): RunError {
  return { code: "gate_failed", message, retryable: false };
}

/** All of them, also after a red one: whoever repairs shall see everything at once. */
async function runChecks(state: RunState, node: GateNode, round: number): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  for (const check of node.checks) {
    if (state.stopped !== undefined) break;
    const result = await runCheck(state, node, check);
    results.push(result);
    await state.emit({ type: "gate.check", nodeId: node.id, round, check: result });
  }
  if (node.protect.length > 0 && state.stopped === undefined) {
    const result = await checkProtected(state, node.protect);
    results.push(result);
    await state.emit({ type: "gate.check", nodeId: node.id, round, check: result });
  }
  return results;
}

async function runCheck(state: RunState, node: GateNode, check: GateCheck): Promise<CheckResult> {
  const startedAt = performance.now();
  const ids = { nodeId: node.id, checkId: check.id };
  const pipe = new OutputPipe((stream, bytes) => state.emitOutput({ ...ids, stream, bytes }), state.hidden);
  const timeout = check.timeout ?? node.timeout;
  const cwd = check.cwd ?? node.cwd;
  const outcome = await runStep(
    state,
    {
      ...check,
      env: { ...node.env, ...check.env },
      secrets: node.secrets,
      ...(timeout !== undefined && { timeout }),
      ...(cwd !== undefined && { cwd }),
    },
    pipe,
  );
  // The harness or the sandbox failed, not the code: an agent could repair nothing.
  const isBroken = outcome.error !== undefined && outcome.exitCode === undefined && check.exec === undefined;
  if (isBroken) throw new BrokenStep(outcome);
  const said = pipe.kept.text;
  return {
    id: check.id,
    status: outcome.status === "success" ? "success" : outcome.status === "failure" ? "failure" : "cancelled",
    durationMs: Math.round(performance.now() - startedAt),
    output: said === "" ? (outcome.error?.message ?? "") : said,
    ...(outcome.exitCode !== undefined && { exitCode: outcome.exitCode }),
    ...(outcome.timedOut === true && { timedOut: true }),
    ...(outcome.command !== undefined && { command: outcome.command }),
  };
}

async function checkProtected(state: RunState, globs: readonly string[]): Promise<CheckResult> {
  const startedAt = performance.now();
  const touched = (await changedPaths(state.sandbox)).filter(createPathMatcher(globs));
  const list = touched.slice(0, 50).map((path) => `  ${path}`);
  return {
    id: "protected-paths",
    status: touched.length === 0 ? "success" : "failure",
    durationMs: Math.round(performance.now() - startedAt),
    output: touched.length === 0 ? "" : state.hide(`these must be as they were, and were changed:\n${list.join("\n")}`),
  };
}

/** What an agent is told of the red checks. */
function describe(red: readonly CheckResult[]): string {
  return red
    .map(({ id, command, output, exitCode, timedOut }) => {
      const how = timedOut === true ? "not done in time" : exitCode === undefined ? "red" : `exit code ${exitCode}`;
      return [`## ${id}: ${how}`, ...(command === undefined ? [] : [`$ ${command}`]), tail(output)].join("\n");
    })
    .join("\n\n");
}

function tail(text: string): string {
  return text.length <= FAILURE_BYTES ? text : `[…]\n${text.slice(-FAILURE_BYTES)}`;
}

function lineOf({ id, status, exitCode }: CheckResult): string {
  return `${id}: ${status}${exitCode === undefined || exitCode === 0 ? "" : ` (exit code ${exitCode})`}`;
}
