import { setTimeout as delay } from "node:timers/promises";

/** Makes a function that resolves at most `perSecond` times a second, after `burst` times at once. */
export function createPace(perSecond: number, burst: number): () => Promise<void> {
  const gap = 1000 / perSecond;
  let next = 0;
  return async () => {
    const now = performance.now();
    next = Math.max(next + gap, now - burst * gap);
    if (next > now) await delay(next - now, undefined, { ref: false });
  };
}
