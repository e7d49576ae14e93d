import { SandboxError, toSandboxError } from "../../../contracts/errors.js";
import { ExpressionError } from "../expression.js";
import type { RunError } from "../node-types.js";
import type { RunView, StepOutcome } from "./node-run.js";

/** Carries the outcome of a step that broke, rather than failed, up to the node. */
export class BrokenStep extends Error {
  override readonly name = "BrokenStep";
  readonly outcome: StepOutcome;

  constructor(outcome: StepOutcome) {
    super(outcome.error?.message ?? outcome.status);
    this.outcome = outcome;
  }
}

/** After these nothing in the sandbox can be reached any more. */
const LOST = ["backend_lost", "closed", "tampered"];

/** Says what an exception in a step means for it. */
export function toOutcome(error: unknown, state: RunView): StepOutcome {
  if (error instanceof BrokenStep) return error.outcome;
  const { stopped } = state;
  if (stopped !== undefined) return { status: stopped === "cancelled" ? "cancelled" : "limit" };
  const failure = toRunError(error, state);
  if (LOST.includes(failure.code)) state.sandboxLost = true;
  return { status: "failure", error: failure };
}

/** An exception as data. */
export function toRunError(error: unknown, state: Pick<RunView, "hide">): RunError {
  if (error instanceof ExpressionError) {
    return { code: "invalid_argument", message: state.hide(error.message), retryable: false };
  }
  if (!(error instanceof SandboxError)) {
    const { code, message } = toSandboxError(error);
    return { code: code === "internal" ? "node_threw" : code, message: state.hide(message), retryable: false };
  }
  const { code, message, hint } = error;
  return { code, message: state.hide(message), retryable: code === "unavailable", ...(hint !== undefined && { hint }) };
}
