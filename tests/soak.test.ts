import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const scripts = new URL("../scripts/", import.meta.url);

interface Growth {
  text: string;
  isTooMuch: boolean;
}
interface Sample {
  operations: number;
  rss: number;
  heap: number;
  descriptors: number;
}

const MB = 1 << 20;
const samples = (grow: (n: number) => Partial<Sample>): Sample[] =>
  Array.from({ length: 12 }, (_, n) => ({
    operations: n * 100,
    rss: 80 * MB,
    heap: 9 * MB,
    descriptors: 20,
    ...grow(n),
  }));

describe("what a soak measures", () => {
  test.each<[string, (n: number) => Partial<Sample>, string[]]>([
    ["nothing grows", () => ({}), []],
    ["it grows at first only", (n) => ({ rss: Math.min(n, 3) * 100 * MB, descriptors: Math.min(n, 3) * 9 }), []],
    ["noise", (n) => ({ rss: (80 + (n % 3) * 15) * MB, descriptors: 20 + (n % 2) }), []],
    ["memory", (n) => ({ rss: (80 + n * 8) * MB }), ["MB of memory"]],
    ["heap", (n) => ({ heap: (9 + n) * MB }), ["MB of heap"]],
    ["descriptors", (n) => ({ descriptors: 20 + n }), ["descriptors"]],
  ])("%s", async (_, grow, expected) => {
    const { fitGrowth } = (await import(new URL("soak-measure.mjs", scripts).href)) as {
      fitGrowth(samples: Sample[]): Growth[];
    };
    const found = fitGrowth(samples(grow));
    expect(found).toHaveLength(3);
    expect(found.filter(({ isTooMuch }) => isTooMuch).map(({ text }) => text.split(":")[0])).toEqual(expected);
  });

  test.each([
    ["--minutes", "x"],
    ["--seed", "1.5"],
    ["--lanes", "0"],
    ["--minutes", "-1"],
  ])("%s %s is refused", (...args) => {
    const { status, stderr } = spawnSync(process.execPath, [
      fileURLToPath(new URL("soak.mjs", scripts)),
      args.join("="),
    ]);
    expect([status, String(stderr)]).toEqual([2, expect.stringContaining("usage: soak")]);
  });
});
