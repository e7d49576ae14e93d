/** Passes on a stream until the signal is aborted, even if the next chunk never comes. */
export async function* untilAborted(
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, undefined> {
  const iterator = source[Symbol.asyncIterator]();
  const expired = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  expired.catch(() => undefined);
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = await Promise.race([iterator.next(), expired]);
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    iterator.return?.().then(undefined, () => undefined);
  }
}
