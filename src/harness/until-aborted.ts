/** Waits for work until a signal is aborted: then this rejects with `reason`, and the work continues with nobody waiting. */
export async function untilAborted<T>(
  signal: AbortSignal,
  reason: () => unknown,
  work: () => T | Promise<T>,
): Promise<T> {
  const waiting = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(reason());
    signal.addEventListener("abort", () => reject(reason()), { once: true, signal: waiting.signal });
  });
  try {
    return await Promise.race([aborted, (async () => await work())()]);
  } finally {
    waiting.abort();
  }
}
