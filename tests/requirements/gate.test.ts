import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { findCitations, findGaps, type Requirement } from "./requirement.js";
import { REQUIREMENTS } from "./requirements.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const HERE = fileURLToPath(new URL(".", import.meta.url));

function filesBelow(path: string): string[] {
  if (!statSync(path, { throwIfNoEntry: false })) return [];
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path)
    .filter((name) => name !== "node_modules")
    .flatMap((name) => filesBelow(join(path, name)));
}

function readCitations(): Map<string, string[]> {
  const tests = filesBelow(join(ROOT, "tests")).filter((file) => file.endsWith(".ts") && !file.startsWith(HERE));
  const cases = filesBelow(join(ROOT, "src", "testing")).filter((file) => file.endsWith(".ts"));
  return new Map([...tests, ...cases].map((file) => [relative(ROOT, file), findCitations(readFileSync(file, "utf8"))]));
}

test("every requirement has a test or a reason, and every citation a requirement", () => {
  expect(findGaps(REQUIREMENTS, readCitations())).toEqual([]);
});

describe("the gate itself", () => {
  const asked = (id: string, reason: Partial<Requirement> = {}): Requirement => ({
    id,
    sentence: "s",
    source: "x",
    ...reason,
  });
  const cites = (...ids: string[]): Map<string, string[]> => new Map([["a.test.ts", ids]]);

  test.each([
    ["a requirement without a test", [asked("S1-AC-1")], cites(), /S1-AC-1 has no test/],
    ["a citation of nothing", [], cites("S1-AC-9"), /a\.test\.ts cites S1-AC-9/],
    [
      "a superseded one that is cited",
      [asked("S1-AC-1", { superseded: "r" })],
      cites("S1-AC-1"),
      /superseded and still/,
    ],
    ["one to come that is cited", [asked("S1-AC-1", { later: "r" })], cites("S1-AC-1"), /cited already/],
    ["an empty reason", [asked("S1-AC-1", { later: "" })], cites(), /empty reason/],
    ["two reasons", [asked("S1-AC-1", { later: "a", superseded: "b" })], cites(), /both/],
    ["one id twice", [asked("S1-AC-1"), asked("S1-AC-1")], cites("S1-AC-1"), /defined twice/],
  ])("finds %s", (_what, requirements, citations, gap) => {
    expect(findGaps(requirements, citations).join("\n")).toMatch(gap);
  });

  test("is content with tests and reasons", () => {
    const requirements = [asked("S1-AC-1"), asked("S1-AC-2", { superseded: "r" }), asked("S1-AC-3", { later: "r" })];
    expect(findGaps(requirements, cites("S1-AC-1"))).toEqual([]);
  });

  test("reads ids from names, several in one, and from the fields of cases", () => {
    const text = 'test("[S1-AC-1] [S1-TEST-exec-runs] [N-GIT-01] works", f);\n  requirement: "Holds. [S3-AC-2]",\n';
    expect(findCitations(text)).toEqual(["S1-AC-1", "S1-TEST-exec-runs", "N-GIT-01", "S3-AC-2"]);
  });

  test("takes no id from a comment, nor from a test that does not run", () => {
    const text =
      '// [S1-AC-1]\n/* [S1-AC-2] */ test.skip("[S1-AC-3]", f); test.todo(\n"[S1-AC-4]"); x(); // [S1-AC-5]\n';
    expect(findCitations(text)).toEqual([]);
  });
});
