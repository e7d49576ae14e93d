/** Keeps so many megabytes of the JavaScript heap in use until `release` is called. */
export function fillHeap(megabytes) {
  // Numbers with a fraction are stored as they are: eight bytes each, nothing for the collector to follow.
  let kept = Array.from({ length: Math.ceil(megabytes / 8) }, (_, n) => new Array(1 << 20).fill(n + 0.5));
  return {
    release() {
      kept = [];
      return kept.length;
    },
  };
}
