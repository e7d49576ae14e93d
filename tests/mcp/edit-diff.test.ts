import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { editDiff } from "../../src/mcp/edit-diff.js";

const folder = mkdtempSync(join(tmpdir(), "glovebox-diff-"));

it("is a patch that makes the edit", () => {
  const text = fc
    .array(fc.constantFrom("a", "b", "ab", "\n", "\n", "c\nd\n"), { minLength: 1, maxLength: 40 })
    .map((parts) => parts.join(""));
  const piece = fc.constantFrom("a", "b", "a\n", "\nb", "b\nb", "\n\n", "c\nd");
  const replacement = fc.constantFrom("", "x", "x\n", "\nx", "a", "x\ny\nz");
  try {
    fc.assert(
      fc.property(text, piece, replacement, (before, old, made) => {
        const after = before.replaceAll(old, () => made);
        if (after === before || before === "" || after === "") return;
        const bytes = Buffer.from(before);
        const places: number[] = [];
        for (let at = before.indexOf(old); at !== -1; at = before.indexOf(old, at + old.length)) places.push(at);
        const diff = editDiff("f", { before: bytes, places, old: Buffer.from(old), replacement: Buffer.from(made) });
        writeFileSync(join(folder, "f"), before);
        writeFileSync(join(folder, "p"), diff);
        execFileSync("git", ["apply", "--whitespace=nowarn", "-p0", "p"], {
          cwd: folder,
          env: { PATH: process.env["PATH"] ?? "", GIT_CEILING_DIRECTORIES: tmpdir() },
        });
        expect(readFileSync(join(folder, "f"), "utf8")).toBe(after);
      }),
      { numRuns: 150 },
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});
