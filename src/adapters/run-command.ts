import { SandboxError } from "../../contracts/errors.js";
import type { Sandbox } from "../../contracts/sandbox.js";
import type { ExecOptions, ExecResult } from "../../contracts/types.js";

/** How a framework wants a command to run. Variables may be undefined, as in `process.env`. */
export interface CommandOptions extends Omit<CallOptions, "cwd" | "env" | "signal"> {
  cwd?: string | undefined;
  env?: Readonly<Record<string, string | undefined>> | undefined;
  signal?: AbortSignal | undefined;
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
const shells = new WeakMap<Sandbox, Promise<string>>();

/** Runs a line of shell, by bash where the sandbox has it. An abort rejects with the reason of the signal. */
export async function runCommand(
  sandbox: Sandbox,
  command: string,
  { maxOutput, ...options }: CommandOptions & { maxOutput?: number } = {},
): Promise<ExecResult> {
  return await orAbortReason(options.signal, async () => {
    const argv = await shellLine(sandbox, command);
    return await sandbox.exec({ argv, ...forCall(options), ...(maxOutput !== undefined && { maxOutput }) });
  });
}

/** A command whose output is one text, in the order in which it came where the backend can tell. */
export interface MergedResult {
  readonly exitCode: number;
  readonly output: string;
  readonly truncated: boolean;
}

/** Runs a line of shell for a model: stdout and stderr are one text, and the last line says so if the deadline ended it. */
export async function runMerged(
  sandbox: Sandbox,
  command: string,
  options: CommandOptions & { maxOutput?: number },
): Promise<MergedResult> {
  const isCombined = sandbox.capabilities.combinedOutput === true;
  const result = await runCommand(sandbox, command, { ...options, ...(isCombined && { output: "combined" }) });
  const { exitCode, stdout, stderr, truncated, timedOut } = result;
  const between = stdout === "" || stderr === "" || stdout.endsWith("\n") ? "" : "\n";
  const output = `${stdout}${between}${stderr}`;
  const end = timedOut ? deadlineLine(result) : undefined;
  return {
    exitCode,
    output: end === undefined ? output : `${output}${output === "" || output.endsWith("\n") ? "" : "\n"}${end}\n`,
    truncated: truncated.stdout || truncated.stderr,
  };
}

/** What a framework without timeouts of its own shows of a command that the deadline ended. */
export function deadlineLine({ durationMs }: Pick<ExecResult, "durationMs">): string {
  return `[killed at its deadline, after ${Math.round(durationMs / 100) / 10} s]`;
}

/** The arguments that run a line of shell. */
export async function shellLine(sandbox: Sandbox, command: string): Promise<string[]> {
  return [await shellOf(sandbox), "-c", command];
}

/** The path of the shell: models write for bash, and small images don't have it. */
export async function shellOf(sandbox: Sandbox): Promise<string> {
  let found = shells.get(sandbox);
  if (found === undefined) {
    found = findShell(sandbox);
    shells.set(sandbox, found);
    found.catch(() => shells.delete(sandbox));
  }
  return await found;
}

async function findShell(sandbox: Sandbox): Promise<string> {
  const { stdout } = await sandbox.shell("command -v bash || true", { timeout: 30_000 });
  const path = stdout.trim();
  return path.startsWith("/") ? path : "/bin/sh";
}

/** Options that `exec` and `spawn` have in common. */
type CallOptions = Pick<ExecOptions, "cwd" | "env" | "signal" | "timeout" | "output" | "onStdout" | "onStderr">;

/** The options of a call, without variables that have no value or no possible name. */
export function forCall({ cwd, env, signal, ...rest }: CommandOptions): CallOptions {
  const variables = Object.entries(env ?? {}).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && VARIABLE.test(entry[0]),
  );
  return {
    ...rest,
    ...(cwd !== undefined && { cwd }),
    ...(variables.length > 0 && { env: Object.fromEntries(variables) }),
    ...(signal !== undefined && { signal }),
  };
}

/** Does the work, and turns our `aborted` into the reason of the signal, which frameworks look for. */
export async function orAbortReason<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  signal?.throwIfAborted();
  try {
    return await work();
  } catch (error) {
    if (error instanceof SandboxError && error.code === "aborted") signal?.throwIfAborted();
    throw error;
  }
}
