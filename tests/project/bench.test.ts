import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const results = readdirSync(join(root, "bench", "results")).filter((name) => name.endsWith(".json"));

interface Result {
  name: string;
  load: number;
  machine: Record<string, unknown>;
  rows: { variant: string; unit: string; p50: number; p95: number; samples: number }[];
  goals: { what: string; value: number; atMost?: number; atLeast?: number; reached: boolean }[];
}

describe("the results of the bench", () => {
  it.each(results)("%s says what was measured where, and judges it by its own goals", (file) => {
    const result = JSON.parse(readFileSync(join(root, "bench", "results", file), "utf8")) as Result;
    expect(`${result.name}.json`).toBe(file);
    expect(Object.keys(result.machine)).toEqual(
      expect.arrayContaining(["cpu", "cores", "kernel", "node", "git", "bubblewrap"]),
    );
    expect(result.load).toBeGreaterThanOrEqual(0);
    expect(result.goals.length).toBeGreaterThan(0);
    for (const { what, value, atMost, atLeast, reached } of result.goals) {
      const holds = atMost === undefined ? value >= (atLeast as number) : value <= atMost;
      expect([what, reached]).toEqual([what, holds]);
    }
    for (const { variant, p50, p95, samples } of result.rows) {
      expect([variant, p95 >= p50, samples > 0]).toEqual([variant, true, true]);
    }
  });

  it.each(results)("%s names neither this machine nor a place on it", (file) => {
    const text = readFileSync(join(root, "bench", "results", file), "utf8");
    expect(text).not.toMatch(/"\/|\/(?:tmp|home|root|usr)\//);
    expect(text.includes(`"${hostname()}"`)).toBe(false);
  });

  it("are what the table in the readme shows", async () => {
    const { stdout } = await run(process.execPath, [join(root, "bench", "readme.mjs"), "--check"]);
    expect(stdout).toBe("");
  });
});

describe("the bench", () => {
  it("refuses a name and a flag that it does not know, and tells the ones it knows", async () => {
    const failure = await run(process.execPath, [join(root, "bench", "run.mjs"), "exce", "--fast"]).catch(
      (error) => error,
    );
    expect(failure).toMatchObject({ code: 2 });
    expect(String(failure.stderr)).toMatch(/not known: exce --fast\n[\s\S]*names: exec /);
  });
});
