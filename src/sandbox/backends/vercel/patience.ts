import { setTimeout as delay } from "node:timers/promises";
import { retryAfter } from "./failure.js";

/**
 * Repeats a request while the service asks to wait; a request that it refused this way was not executed.
 *
 * Does not start a wait that would end after `patience` milliseconds: the call fails at once.
 */
export async function patiently<T>(patience: number, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const deadline = performance.now() + patience;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const wait = retryAfter(error);
      if (wait === undefined || performance.now() + wait > deadline) throw error;
      await delay(wait, undefined, { ...(signal && { signal }) });
    }
  }
}
