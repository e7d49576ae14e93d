/** Keeps this many megabytes of the JavaScript heap in use, as many small objects, until `release` is called. */
export function fillHeap(megabytes) {
  let kept = [];
  const enough = process.memoryUsage().heapUsed + megabytes * 2 ** 20;
  while (process.memoryUsage().heapUsed < enough) {
    for (let n = 0; n < 100_000; n++) kept.push({ id: n, next: n + 1, weight: n + 0.5, owner: null, flag: n });
  }
  return {
    /** Writes to all of it. */
    use() {
      for (const each of kept) each.id += 1;
    },
    release() {
      kept = [];
      return kept.length;
    },
  };
}
