import { defined } from "../../../util/defined.js";
import { createPathMatcher } from "../../../util/glob.js";
import { changedPaths, fingerprint } from "../../changed-paths.js";
import type { CheckResult, NodeReport, NodeStatus, RunError } from "../../node-types.js";
import { agentKind } from "../agent.js";
import { BrokenStep, toOutcome } from "../failure.js";
import type { NodeOutcome, NodeRun, RunView } from "../node-run.js";
import { GATE_NAMES, type GateCheck, type GateNode, type GateRepair } from "./gate-node.js";

const FAILURE_BYTES = 6_000;

/** Runs the checks of a gate, and lets an agent repair what is red, as often as the gate allows. */
export async function runGate(run: NodeRun, node: GateNode): Promise<NodeOutcome> {
  const { state } = run;
  const children: NodeReport[] = [];
  let checks: CheckResult[] = [];
  const end = (status: NodeStatus, error?: RunError): NodeOutcome => ({
    status,
    checks,
    rounds: children.length,
    children,
    output: checks.map(lineOf).join("\n"),
    ...(error !== undefined && { error }),
  });
  try {
    for (;;) {
      checks = await runChecks(run, node, children.length);
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
      const child = await runRepair(run, node, onFail, { failures: describe(red), round: children.length + 1 });
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

/** A repair is a node of its own, below the gate. */
async function runRepair(
  run: NodeRun,
  gate: GateNode,
  repair: GateRepair,
  names: { failures: string; round: number },
): Promise<NodeReport> {
  const id = `${gate.id}/fix-${names.round}`;
  const child = { id, name: `fix ${names.round} of ${repair.max}`, kind: agentKind.name };
  return await run.child(child, { retry: gate.retry, parentId: gate.id }, () =>
    run.agent({
      task: repair,
      nodeId: id,
      parentId: gate.id,
      env: { ...gate.env, ...repair.env },
      secrets: [...gate.secrets, ...repair.secrets],
      more: { [GATE_NAMES]: names },
      ...(gate.cwd !== undefined && { cwd: gate.cwd }),
    }),
  );
}

function gateFailed(message: string): RunError {
  return { code: "gate_failed", message, retryable: false };
}

/** Runs all of them, even after a red one, so that the repair sees everything at once. */
async function runChecks(run: NodeRun, node: GateNode, round: number): Promise<CheckResult[]> {
  const { state } = run;
  const results: CheckResult[] = [];
  const isProtecting = node.protect.length > 0;
  const all = [
    ...node.checks.map((check) => () => runCheck(run, node, check)),
    ...(isProtecting ? [() => checkProtected(state, node.protect)] : []),
  ];
  for (const look of all) {
    if (state.stopped !== undefined) break;
    const check = await look();
    results.push(check);
    await state.emit({ type: "gate.check", nodeId: node.id, round, check });
  }
  return results;
}

async function runCheck({ step }: NodeRun, node: GateNode, check: GateCheck): Promise<CheckResult> {
  const startedAt = performance.now();
  const timeout = check.timeout ?? node.timeout;
  const cwd = check.cwd ?? node.cwd;
  const own = { env: { ...node.env, ...check.env }, secrets: node.secrets, ...defined({ timeout, cwd }) };
  const ids = { nodeId: node.id, checkId: check.id };
  const { output, outputTruncated: _, ...outcome } = await step({ ...check, ...own }, ids);
  const { status, exitCode, timedOut, command, error, env, hiddenEnv } = outcome;
  // The harness or the sandbox failed, not the code: an agent could not repair it.
  if (error !== undefined && exitCode === undefined && check.exec === undefined) throw new BrokenStep(outcome);
  return {
    id: check.id,
    status: status === "success" || status === "failure" ? status : "cancelled",
    durationMs: Math.round(performance.now() - startedAt),
    output: output === "" ? (error?.message ?? "") : output,
    ...defined({ exitCode, timedOut: timedOut || undefined, command, cwd: outcome.cwd, env, hiddenEnv }),
  };
}

async function checkProtected(state: RunView, globs: readonly string[]): Promise<CheckResult> {
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

/** What a prompt says about the red checks. */
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
