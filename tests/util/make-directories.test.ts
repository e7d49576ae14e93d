import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeDirectories } from "../../src/util/make-directories.js";
import { createScratch, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
beforeEach(() => {
  scratch = createScratch();
});
afterEach(() => scratch.remove());

test("all that is missing is made, and the first of it is told", () => {
  const first = join(scratch.path, "a");
  expect(makeDirectories(join(first, "b", "c"), 0o700)).toBe(first);
  expect(statSync(join(first, "b")).mode & 0o777).toBe(0o700);
  expect(makeDirectories(join(first, "b", "c"))).toBeUndefined();
  expect(makeDirectories("/")).toBeUndefined();
});

test("where a directory that is there takes no new one, that is said at once", () => {
  expect(() => makeDirectories("/proc/glovebox/a/b")).toThrow(expect.objectContaining({ code: "ENOENT" }));
});

test("a file in the way is said", () => {
  const file = join(scratch.path, "file");
  writeFileSync(file, "");
  expect(() => makeDirectories(file)).toThrow(expect.objectContaining({ code: "EEXIST" }));
  expect(() => makeDirectories(join(file, "a", "b"))).toThrow(expect.objectContaining({ code: "ENOTDIR" }));
  expect(existsSync(join(scratch.path, "a"))).toBe(false);
});
