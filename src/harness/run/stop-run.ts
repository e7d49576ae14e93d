import { setTimeout as delay } from "node:timers/promises";
import { SandboxError } from "../../../contracts/errors.js";
import { findRunDirectory, isRunning, readReport, requestStop, stateOfRun } from "../store.js";
import type { RunReport } from "../types.js";

const PAUSE = 100;

/** Stops a run cleanly, whichever process it is in: what it did is kept. Resolves once it is over. */
export async function stopRun(runId: string, opts: { timeout?: number } = {}): Promise<RunReport> {
  const directory = await findRunDirectory(runId);
  if (!(await isRunning(directory))) {
    const state = await stateOfRun(directory, await readReport(directory));
    throw new SandboxError("conflict", `Run "${runId}" is not running: ${state}`, {
      retryable: false,
      hint: `glovebox show ${runId}`,
    });
  }
  await requestStop(directory);
  const deadline = performance.now() + (opts.timeout ?? 60_000);
  while (await isRunning(directory)) {
    if (performance.now() > deadline) {
      throw new SandboxError("unavailable", `Run "${runId}" was asked to stop and has not yet`, {
        hint: `glovebox logs ${runId} -f shows what it does`,
      });
    }
    await delay(PAUSE);
  }
  const report = await readReport(directory);
  if (report === undefined) throw new SandboxError("not_found", `Run "${runId}" ended before it wrote a report`);
  return report;
}
