import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { countsProcesses } from "../../../../../src/sandbox/backends/local/limits/process-count.js";
import { DEFAULT_PIDS } from "../../../../../src/sandbox/backends/local/limits.js";
import {
  compileProbe,
  createManagers,
  MANAGERS,
  type Manager,
  type Managers,
} from "../../../../support/local/manager.js";

let managers: Managers;
let probe: string;
beforeAll(() => {
  managers = createManagers();
  probe = compileProbe("fork-until-refused", managers.directory);
});
afterAll(() => managers.remove());

describe.each(MANAGERS)("a fork bomb in a sandbox of %s", (name) => {
  const bomb = async (
    most: number,
    limits: { pids?: number } = {},
    times = 1,
  ): Promise<{ count: number; why: string }[]> => {
    const manager = managers.all.find((each) => each.name === name) as Manager;
    const { results } = await manager.run({
      options: { limits },
      programs: { bomb: probe },
      scripts: Array.from({ length: times }, () => `exec ./bomb ${most}`),
    });
    return results.map(({ stdout }) => {
      const [count, ...why] = stdout.trim().split(" ");
      return { count: Number(count), why: why.join(" ") };
    });
  };

  test("fails at limits.pids, counted in the whole sandbox and nowhere else, and the next command has as much room", async () => {
    const outcomes = await bomb(200, { pids: 40 }, 2);
    expect(outcomes).toHaveLength(2);
    for (const { count, why } of outcomes) {
      expect(why).toBe("Resource temporarily unavailable");
      // The guest, the supervisor, the program itself and at most four processes that start sandboxes count too.
      expect(count).toBeLessThanOrEqual(37);
      expect(count).toBeGreaterThanOrEqual(32);
    }
  });

  test(`fails at ${DEFAULT_PIDS} processes if nobody asked for a limit`, async () => {
    const [outcome] = await bomb(DEFAULT_PIDS + 100);
    expect(outcome?.why).toBe("Resource temporarily unavailable");
    expect(outcome?.count).toBeLessThan(DEFAULT_PIDS);
    expect(outcome?.count).toBeGreaterThan(DEFAULT_PIDS - 20);
  });

  test("goes further with a higher limits.pids", async () => {
    const most = DEFAULT_PIDS + 100;
    expect(await bomb(most, { pids: 8192 })).toEqual([{ count: most, why: "all" }]);
  });
});

describe("an ordinary user without a control group", () => {
  test.each([
    [{ limits: { memory: 1 << 30 } }, "limits.memory (1073741824): an ordinary user has no control group here"],
    [{ limits: { cpus: 1 } }, "limits.cpus (1): an ordinary user has no control group here"],
    [
      { limits: { pids: 64 }, isolation: "none" as const },
      "limits.pids (64): without isolation nobody counts its processes",
    ],
  ])("is refused, with the reason, before anything is made: %j", async (options, message) => {
    const manager = managers.all.find((each) => each.name === "an ordinary user") as Manager;
    const opening = manager.run({ options });
    await expect(opening).rejects.toThrow(`unsupported: The local backend can't enforce ${message}`);
    expect(readdirSync(join(manager.home, "tmp"))).toEqual([]);
  });
});

test("a file system that can't be attached for another user is named, with what to do", async ({ skip }) => {
  if (process.getuid?.() !== 0) skip("only root's sandboxes have another user");
  const manager = managers.all.find((each) => each.name === "root") as Manager;
  const through = ["unshare", "--mount", "sh", "-c", 'mount -t ramfs none "$TMPDIR" && exec "$@"', "sh"];
  await expect(manager.run({ through })).rejects.toThrow(
    /no_isolation: .*cannot be attached for another user.*\(set TMPDIR/,
  );
});

test.each([
  ["4.19.0-27-amd64", "user", false],
  ["5.13.0", "user", false],
  ["5.14.0-70.el9", "user", true],
  ["6.1.0-18-amd64", "user", true],
  ["6.18.44-fc", "user", true],
  ["5.10.0", "root", true],
  ["6.18.44-fc", "bare-root", false],
] as const)("the processes of a jail are counted alone: Linux %s, by %s: %s", (linux, who, isCounted) => {
  expect(countsProcesses(linux, who)).toBe(isCounted);
});
