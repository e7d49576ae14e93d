import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readBatch } from "../../src/batch.js";
import { expectRefused } from "../support/refused.js";
import { type BatchPlace, createBatchPlace, manyTasks, runAll, serve } from "./batch-place.js";

let place: BatchPlace;
beforeEach(() => {
  place = createBatchPlace();
});
afterEach(() => place.remove());

describe("a directory without a journal", () => {
  test.each(["results.jsonl", "batch.json", "report.html"])("that has somebody's %s is refused", async (name) => {
    const service = serve();
    mkdirSync(place.out);
    const path = join(place.out, name);
    writeFileSync(path, "mine\n");
    await expectRefused(
      runAll({ tasks: manyTasks(2), out: place.out, backend: service.name }),
      "conflict",
      path,
      "no journal",
    );
    expect(readFileSync(path, "utf8")).toBe("mine\n");
    expect(existsSync(join(place.out, "journal.jsonl"))).toBe(false);
    expect(service.requests).toEqual({});
  });

  test("that has results of ours keeps them", async () => {
    const service = serve();
    const options = { tasks: manyTasks(3), out: place.out, backend: service.name };
    await runAll(options);
    const results = readFileSync(join(place.out, "results.jsonl"), "utf8");
    rmSync(join(place.out, "journal.jsonl"));
    await expectRefused(runAll(options), "conflict", "results.jsonl");
    expect(readFileSync(join(place.out, "results.jsonl"), "utf8")).toBe(results);
    await expectRefused(readBatch(place.out), "not_found", "journal.jsonl is gone");
  });

  test("that a driver left which died before it wrote anything is used", async () => {
    const service = serve();
    mkdirSync(place.out);
    for (const name of ["journal.jsonl", "results.jsonl"]) writeFileSync(join(place.out, name), "");
    const { results } = await runAll({ tasks: manyTasks(2), out: place.out, backend: service.name });
    expect(results).toHaveLength(2);
  });
});

test("a batch that a newer Glovebox has gone on with is refused, and stays as it is", async () => {
  const service = serve();
  const options = { tasks: manyTasks(3), out: place.out, backend: service.name };
  await runAll(options);
  const newer = `${place.out}-newer`;
  cpSync(place.out, newer, { recursive: true });
  const plan = join(newer, "batch.json");
  const text = readFileSync(plan, "utf8").replace('"version":1', '"version":2');
  writeFileSync(plan, text);
  await expectRefused(runAll({ ...options, out: newer }), "unsupported", plan);
  expect(readFileSync(plan, "utf8")).toBe(text);
});

describe("a place for a batch", () => {
  test("is made with the directories above it", async () => {
    const out = join(place.out, "a", "b");
    const { results } = await runAll({ tasks: manyTasks(1), out, backend: serve().name });
    expect(results).toHaveLength(1);
    expect([statSync(place.out).mode & 0o777, existsSync(join(out, "journal.jsonl"))]).toEqual([0o700, true]);
  });

  test("that is a file, or where nobody can make one, is refused", async () => {
    const path = join(place.path, "file");
    writeFileSync(path, "mine\n");
    const options = { tasks: manyTasks(1), backend: serve().name };
    await expectRefused(runAll({ ...options, out: path }), "invalid_argument", path, "is a file");
    await expectRefused(runAll({ ...options, out: "/proc/batch" }), "not_found", "/proc/batch");
  });
});
