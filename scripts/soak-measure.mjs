import { readdirSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");

/** The resources of this process while no sandbox is open, after this many operations. */
export async function sampleProcess(operations) {
  // Descriptors close, and weak references clear, a few turns of the event loop later.
  for (let turn = 0; turn < 3; turn++) {
    collectGarbage();
    await delay(10);
  }
  const { rss, heapUsed } = process.memoryUsage();
  return { operations, rss, heap: heapUsed, descriptors: readdirSync("/proc/self/fd").length };
}

/** The most that each may grow over a whole run: at first memory always grows. */
const LIMITS = {
  rss: { start: 40 << 20, each: 1024, unit: 1 << 20, name: "MB of memory" },
  heap: { start: 6 << 20, each: 256, unit: 1 << 20, name: "MB of heap" },
  descriptors: { start: 2, each: 0, unit: 1, name: "descriptors" },
};

/** Fits a line through all but the first samples, and reports which resources grow too much. */
export function fitGrowth(samples) {
  const settled = samples.slice(Math.ceil(samples.length / 4));
  if (settled.length < 3) return [];
  const span = settled.at(-1).operations - settled[0].operations;
  return Object.entries(LIMITS).map(([key, { start, each, unit, name }]) => {
    const slope = slopeOf(settled.map((sample) => [sample.operations, sample[key]]));
    const growth = slope * span;
    const [first, last, more] = [settled[0][key], settled.at(-1)[key], growth].map((value) =>
      (value / unit).toFixed(1),
    );
    const text = `${name}: ${first} to ${last}, ${more} more in ${span} operations by a line through ${settled.length} samples`;
    return { text, isTooMuch: growth > Math.max(start, each * span) };
  });
}

function slopeOf(points) {
  const mean = (index) => points.reduce((sum, point) => sum + point[index], 0) / points.length;
  const [x, y] = [mean(0), mean(1)];
  const spread = points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0);
  return spread === 0 ? 0 : points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0) / spread;
}
