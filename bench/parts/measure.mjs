/** Runs something and returns the time it took in milliseconds. */
export async function timed(work) {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/**
 * Runs every variant once per round, each round starting with another one, so that a machine that gets slower or faster
 * affects all of them. A variant returns its own figure, or is timed if it returns none. `before` is
 * called before each that counts, outside of its time.
 */
export async function interleave(variants, { rounds, warmup = 1, before = () => {} }) {
  const names = Object.keys(variants);
  const samples = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = -warmup; round < rounds; round++) {
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(turn + Math.max(0, round)) % names.length];
      if (round >= 0) before();
      let own;
      const took = await timed(async () => {
        own = await variants[name](round);
      });
      if (round >= 0) samples[name].push(typeof own === "number" ? own : took);
    }
  }
  return samples;
}

/** The value below which a share of the samples is, by the nearest-rank method. */
export function percentile(samples, share) {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))];
}

/** The median of the samples. */
export function p50(samples) {
  return percentile(samples, 0.5);
}

/** One line of a result: what was measured, the unit and the value. */
export function row(variant, samples, unit = "ms") {
  return { variant, unit, p50: round(p50(samples)), p95: round(percentile(samples, 0.95)), samples: samples.length };
}

/** Rounds to four significant digits: more would be false precision. */
export function round(value) {
  return Number(value.toPrecision(4));
}

/** A goal as a ratio: our figure against another, both in the same unit. */
export function ratioGoal(what, { ours, other, atMost, atLeast, floor }) {
  const ratio = round(ours.p50 / other.p50);
  return goal(what, { value: ratio, unit: "x", against: other.variant, ours, other, atMost, atLeast, floor });
}

/** A goal as a figure. The floor, a row, is the lower bound on this machine. */
export function goal(what, { value, unit, against, ours, other, atMost, atLeast, floor }) {
  const isReached = atMost === undefined ? value >= atLeast : value <= atMost;
  const limit = atMost === undefined ? { atLeast } : { atMost };
  const shown = ({ variant, p50, unit }) => ({ variant, p50, unit });
  return {
    what,
    value: round(value),
    unit,
    ...limit,
    reached: isReached,
    ...(against && { against }),
    ...(ours && { ours: shown(ours) }),
    ...(other && { other: shown(other) }),
    ...(floor && { floor: shown(floor) }),
  };
}
