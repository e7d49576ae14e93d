/** How long a result from the host is reused, in milliseconds. */
const BELIEVED = 5_000;

/** Caches what was made for a key for a short time, so that many sandboxes opened in a row look at the host once. */
export function createMemory<T>(): (key: string, make: () => T) => T {
  let last: { key: string; value: T; until: number } | undefined;
  return (key, make) => {
    const now = performance.now();
    if (last === undefined || last.key !== key || last.until < now)
      last = { key, value: make(), until: now + BELIEVED };
    return last.value;
  };
}
