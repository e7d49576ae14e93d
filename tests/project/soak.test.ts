import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const scripts = new URL("../../scripts/", import.meta.url);

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

describe("[F-32] what a soak does", () => {
  interface Lane {
    operations: number;
    counts: Map<string, number>;
    marks: string[];
    run(count: number, isOver: () => boolean): Promise<void>;
  }
  type CreateLane = (opts: object) => Lane;

  /** A library whose sandboxes do at once what is expected of them. */
  function createStub(): object {
    let made = 0;
    const open = (from?: Map<string, string>): object => {
      const files = new Map(from);
      const id = `stub-${++made}`;
      return {
        id,
        exec: async ({ argv, signal }: { argv: string[]; signal?: AbortSignal }) => {
          if (argv[0] === "echo") return { stdout: `${argv[1]}\n`, exitCode: 0 };
          throw Object.assign(new Error("over"), { code: signal === undefined ? "backend_lost" : "aborted" });
        },
        shell: async () => ({ timedOut: true }),
        writeFile: async (path: string, text: string) => void files.set(path, text),
        writeFiles: async (all: Record<string, string>) => {
          for (const [path, text] of Object.entries(all)) files.set(path, text);
        },
        readFile: async (path: string) => files.get(path),
        snapshot: async () => id,
        restore: async () => void files.set("saved.txt", id),
        fork: async () => open(files),
        spawn: async () => ({ kill: async () => undefined, wait: async () => undefined }),
        teardown: async () => undefined,
      };
    };
    return {
      openSandbox: async () => open(),
      deleteSnapshot: async () => undefined,
      reap: async () => ({ failed: [] }),
    };
  }

  async function live(seed: number): Promise<Lane> {
    const { createLane } = (await import(new URL("soak-lane.mjs", scripts).href)) as { createLane: CreateLane };
    const root = mkdtempSync(join(tmpdir(), "glovebox-soak-"));
    mkdirSync(join(root, "scripts"));
    writeFileSync(join(root, "scripts", "soak-victim.mjs"), "");
    const lane = createLane({
      seed,
      name: "lane",
      repo: root,
      glovebox: createStub(),
      failpoints: ["lock.held"],
      root,
    });
    try {
      for (let stretch = 0; stretch < 4; stretch++) await lane.run(10, () => false);
    } finally {
      rmSync(root, { recursive: true });
    }
    return lane;
  }

  test("is the same for the same seed, and something else for another", async () => {
    const [one, same, other] = await Promise.all([live(7), live(7), live(8)]);
    expect([one.operations, one.marks.length]).toEqual([40, 4]);
    expect([same.marks, [...same.counts]]).toEqual([one.marks, [...one.counts]]);
    expect(other.marks).not.toEqual(one.marks);
  });
});

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
