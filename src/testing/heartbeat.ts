import type { ExecResult } from "../../contracts/types.js";
import type { Sandbox } from "../sandbox/types.js";
import { check } from "./assert.js";
import { pause } from "./script.js";

/**
 * A script that appends a byte to the file `$1` ten times a second: if the file grows, the process is alive. It ends after
 * about half a minute, so that it does not outlive the kit for long if a backend fails to kill it.
 */
export const HEARTBEAT =
  'i=0; while [ $i -lt 300 ]; do printf x >> "$1"; i=$((i+1)); sleep 0.1 2>/dev/null || sleep 1; done';

/** Script code that waits until the file `$2` has its first beat. */
export const AWAIT_BEAT = 'until [ -s "$2" ]; do sleep 0.05 2>/dev/null || sleep 1; done';

/** Fails unless the files had beats and have stopped growing. */
export async function assertStill(sandbox: Sandbox, files: readonly string[], what: string): Promise<void> {
  const before = await sizes(sandbox, files);
  for (const [file, size] of before) check(size > 0, `${what}: ${file} never had a beat, so this proves nothing`);
  await pause(1_000);
  const after = await sizes(sandbox, files);
  for (const [file, size] of before) {
    check(after.get(file) === size, `${what}: the process that writes ${file} is still alive`);
  }
}

/** Fails unless the file grows, which shows that its process is alive. */
export async function assertBeating(sandbox: Sandbox, file: string, what: string): Promise<void> {
  const first = (await sizes(sandbox, [file])).get(file) ?? 0;
  for (let i = 0; i < 200; i++) {
    await pause(100);
    if (((await sizes(sandbox, [file])).get(file) ?? 0) > first) return;
  }
  check(false, `${what}: the process that writes ${file} is not alive`);
}

/**
 * Runs a command with longer and longer deadlines until it had time to start, so that a busy machine does not look like a
 * broken backend.
 */
export async function withDeadline(
  run: (timeout: number) => Promise<ExecResult>,
  isUnderWay: (result: ExecResult) => boolean,
  first = 800,
): Promise<ExecResult> {
  let result = await run(first);
  for (let timeout = 4 * first; timeout < 20_000 && !isUnderWay(result); timeout *= 4) result = await run(timeout);
  return result;
}

async function sizes(sandbox: Sandbox, files: readonly string[]): Promise<Map<string, number>> {
  const stats = await Promise.all(files.map((file) => sandbox.stat(file)));
  return new Map(files.map((file, i) => [file, stats[i]?.size ?? 0]));
}
