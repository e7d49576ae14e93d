import type { ExecOptions, ExecResult } from "../../contracts/types.js";
import type { Sandbox } from "../sandbox/types.js";
import { check, within } from "./assert.js";

/** The arguments that run a script with /bin/sh, the one shell every image has. `args` are `$1`, `$2` and so on. */
export function scriptArgv(script: string, ...args: string[]): string[] {
  return ["/bin/sh", "-c", script, "sh", ...args];
}

/** Runs a script that must succeed and returns its standard output. */
export async function script(sandbox: Sandbox, text: string, ...args: string[]): Promise<string> {
  const result = await sandbox.exec({ argv: scriptArgv(text, ...args) });
  check(result.exitCode === 0, `the script ${JSON.stringify(text)} ended with ${result.exitCode}: ${result.stderr}`);
  return result.stdout;
}

/** After this a command hangs. Megabytes through the lines of a remote service take a while beside other work. */
const A_HANG = 120_000;

/** Runs a command that must end by itself. */
export function finishes(sandbox: Sandbox, opts: ExecOptions): Promise<ExecResult> {
  return aside(within(A_HANG, opts.argv.join(" ").slice(0, 80), sandbox.exec(opts)));
}

/** Marks a promise that is awaited later, so that its rejection does not end the process if the case fails first. */
export function aside<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** Polls for at most half a minute until the answer is not undefined. */
export async function until<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
  const end = performance.now() + 30_000;
  while (performance.now() < end) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    await pause(50);
  }
  check(false, `${what}: it did not happen in 30 s`);
}

/** Waits in real time. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
