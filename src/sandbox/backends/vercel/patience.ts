import { setTimeout as delay } from "node:timers/promises";
import { toldToWait } from "./failure.js";

/**
 * Asks the service until it does not tell us to wait any more. What it refused that way it has not done.
 *
 * A wait that would end after `patience` milliseconds is not started: the call fails at once.
 */
export async function patiently<T>(patience: number, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const deadline = performance.now() + patience;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const wait = toldToWait(error);
      if (wait === undefined || performance.now() + wait > deadline) throw error;
      await delay(wait, undefined, { ...(signal && { signal }) });
    }
  }
}
