import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const linux = process.platform === "linux";
let scratch: string;

beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "glovebox-mutants-"));
});

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Runs the fuzzer in a process of its own. */
function fuzz(...args: string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [join(root, "scripts", "fuzz-guest.mjs"), ...args]);
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk;
  });
  child.stderr.on("data", (chunk: Buffer) => {
    output += chunk;
  });
  return new Promise((resolve) => {
    child.on("close", (code) => resolve({ code, output }));
  });
}

function counted(output: string, what: string): number {
  return Number(new RegExp(`^${what}:? (\\d+)`, "m").exec(output)?.[1] ?? 0);
}

/** A copy of the guest's sources with one check taken away. */
function withBug(file: string, check: string, without: string): string {
  const copy = mkdtempSync(join(scratch, "guest-"));
  cpSync(join(root, "guest"), copy, { recursive: true, filter: (path) => !path.endsWith("bin") });
  const source = readFileSync(join(copy, file), "utf8");
  expect(source).toContain(check);
  writeFileSync(join(copy, file), source.replace(check, without));
  return copy;
}

if (!linux) test("the guest under sanitizers", ({ skip }) => skip("the guest is for Linux"));

describe.runIf(linux)("the guest under sanitizers", () => {
  test("survives broken requests, and what it answers is always whole and in order", async () => {
    const { code, output } = await fuzz("--mode", "requests", "--seed", "7", "--cases", "120", "--seconds", "60");
    expect(output).not.toContain("ERROR");
    expect(code, output).toBe(0);
    expect(counted(output, "cases")).toBe(120);
    // Each kind of answer was provoked, so each kind of request got through.
    for (const type of ["0x80", "0x81", "0x82", "0x83", "0x84", "0x85", "0x86", "0x87"]) {
      expect(counted(output, `answers of type ${type}`), type).toBeGreaterThan(0);
    }
  });

  test("unpacks broken archives below the root or not at all, and says how it ended", async () => {
    const { code, output } = await fuzz("--mode", "archives", "--seed", "7", "--cases", "60", "--seconds", "60");
    expect(code, output).toBe(0);
    expect(counted(output, "cases")).toBe(60);
    for (const ending of [0, 200, 201, 202, 203]) expect(counted(output, `ended with ${ending}`)).toBeGreaterThan(0);
  });

  const bugs: [string, string, string, string, string, RegExp][] = [
    [
      "a body read beyond its end",
      "requests",
      "channel/frame.c",
      "if (r->bad || (size_t)(r->end - r->at) < length) {",
      "if (r->bad) {",
      /heap-buffer-overflow|status|SEGV/,
    ],
    [
      "a record searched beyond its end",
      "archives",
      "files/tar-in.c",
      " && length > (size_t)(blank - at)",
      "",
      /heap-buffer-overflow|negative-size|status/,
    ],
    [
      "lookups that leave the root",
      "archives",
      "files/files.c",
      ".resolve = (absolute ? RESOLVE_IN_ROOT : RESOLVE_BENEATH) | RESOLVE_NO_MAGICLINKS",
      ".resolve = RESOLVE_NO_MAGICLINKS",
      /outside the root/,
    ],
  ];
  test.each(bugs)("finds %s", async (_name, mode, file, check, without, said) => {
    const sources = withBug(file, check, without);
    const { code, output } = await fuzz("--mode", mode, "--seed", "7", "--seconds", "40", "--sources", sources);
    expect(code).toBe(1);
    expect(output).toMatch(said);
  });
});
