import { shellQuote } from "../../util/shell.js";
import { type Step, type StepOutcome, toOutcome } from "../nodes.js";
import type { NodeFunction } from "../types.js";
import { untilAborted } from "../until-aborted.js";
import type { EngineState } from "./engine-state.js";
import type { OutputPipe } from "./output-pipe.js";
import { renderAll, renderText } from "./scope.js";
import { settingOf } from "./step-setting.js";

/** The result has none of the output itself: it was passed on piece by piece. */
const KEPT_BY_EXEC = 1;
/** Added to the limit of the run, so that the run's own clock fires first. */
const SLACK = 60_000;

/** Runs a step to its end. Never throws: what goes wrong is the outcome. */
export async function runStep(state: EngineState, step: Step, pipe: OutputPipe): Promise<StepOutcome> {
  try {
    return step.exec === undefined ? await runCommand(state, step, pipe) : await runFunction(state, step.exec, pipe);
  } catch (error) {
    return toOutcome(error, state);
  } finally {
    await pipe.end();
  }
}

/** The variables of a step: those of the run, its own, and the secrets that it names. */
export async function environmentOf(
  state: EngineState,
  { env, secrets }: Pick<Step, "env" | "secrets">,
): Promise<Record<string, string>> {
  const values = secrets.flatMap((name) =>
    Object.hasOwn(state.secrets, name) ? [[name, state.secrets[name] ?? ""]] : [],
  );
  return { ...state.context.env, ...(await renderAll(state, env)), ...Object.fromEntries(values) };
}

async function runCommand(state: EngineState, step: Step, pipe: OutputPipe): Promise<StepOutcome> {
  const argv: string[] = step.shell === undefined ? [] : ["/bin/sh", "-c", "--", step.shell];
  for (const text of step.run ?? []) argv.push(await renderText(state, text));
  const command = state.hide(step.shell ?? shellQuote(argv), 2_000);
  const env = await environmentOf(state, step);
  const again = {
    command,
    ...settingOf(state, { env: { ...state.sandboxEnv, ...env }, secrets: step.secrets, cwd: step.cwd }),
  };
  const result = await state.sandbox
    .exec({
      argv,
      env,
      timeout: step.timeout ?? state.limits.wall + SLACK,
      signal: state.signal,
      maxOutput: KEPT_BY_EXEC,
      onStdout: (chunk) => pipe.write("stdout", chunk),
      onStderr: (chunk) => pipe.write("stderr", chunk),
      ...(step.cwd !== undefined && { cwd: step.cwd }),
    })
    .catch((error: unknown): StepOutcome => ({ ...toOutcome(error, state), ...again }));
  if ("status" in result) return result;
  const { exitCode, timedOut } = result;
  if (exitCode === 0 && !timedOut) return { status: "success", exitCode, command };
  const message = timedOut
    ? `it was not done within ${step.timeout ?? 0} ms`
    : `it ended with ${result.signal ?? `exit code ${exitCode}`}`;
  const code = timedOut ? "timed_out" : exitCode === 127 ? "not_found" : "command_failed";
  return { status: "failure", exitCode, timedOut, ...again, error: { code, message, retryable: false } };
}

async function runFunction(state: EngineState, exec: NodeFunction, pipe: OutputPipe): Promise<StepOutcome> {
  const { signal, context, sandbox } = state;
  signal.throwIfAborted();
  // A function may not listen to the signal; the limits of the run are enforced all the same.
  const result = await untilAborted(
    signal,
    () => signal.reason,
    () => exec(context, sandbox, signal),
  );
  const { status = "success", output, error } = result ?? {};
  if (output !== undefined) await pipe.write("stdout", Buffer.from(output));
  return { status, ...(error !== undefined && { error: { ...error, message: state.hide(error.message) } }) };
}
