/** Passes on a stream until the signal is aborted, even if the next chunk never comes; then the source is freed. */
export async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T, undefined> {
  const iterator = source instanceof ReadableStream ? reading<T>(source) : source[Symbol.asyncIterator]();
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

/** Its own iterator would wait for the chunk that never comes before it cancels. */
function reading<T>(stream: ReadableStream<T>): AsyncIterator<T, undefined> {
  const reader = stream.getReader();
  return {
    next: async () => {
      const { done, value } = await reader.read();
      return done ? { done, value: undefined } : { done, value };
    },
    return: async () => {
      const cancelled = reader.cancel();
      reader.releaseLock();
      await cancelled;
      return { done: true, value: undefined };
    },
  };
}
