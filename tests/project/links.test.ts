import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

describe("the documents", () => {
  it("link only to files and headings that exist, and to addresses that are well formed", () => {
    const { status, stdout, stderr } = runLinks();
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const [, links, documents] = /^(\d+) links in (\d+) documents/.exec(stdout) ?? [];
    expect([Number(links) > 100, Number(documents) > 20]).toEqual([true, true]);
  });
});

describe("the checker of links", () => {
  let place: string;

  beforeEach(() => {
    place = mkdtempSync(join(tmpdir(), "glovebox-links-"));
  });
  afterEach(() => rmSync(place, { recursive: true, force: true }));

  it.each([
    ["a missing file", "[x](gone.md)", '"gone.md": there is no such file'],
    ["a missing image", "![x](gone.png)", '"gone.png": there is no such file'],
    ["a missing heading", "[x](b.md#no-such)", '"b.md#no-such": the document has no such heading'],
    ["a missing heading of its own", "[x](#no-such)", '"#no-such": the document has no such heading'],
    ["a heading that is only in code", "[x](b.md#in-code)", '"b.md#in-code": the document has no such heading'],
    ["a third heading of two", "[x](b.md#twice-2)", '"b.md#twice-2": the document has no such heading'],
    ["an anchor of a program", "[x](../run.ts#l1)", '"../run.ts#l1": only a document has anchors'],
    ["a file outside", "[x](../../..)", '"../../..": it leads out of the repository'],
    ["an absolute path", "[x](/docs/b.md)", '"/docs/b.md": write it relative to the document'],
    ["no address", "[x]()", '"": there is no address'],
    ["a definition", "[x][y]\n\n[y]: gone.md", '"gone.md": there is no such file'],
    ["a tag", '<a href="gone.md">x</a>', '"gone.md": there is no such file'],
    ["an address without a domain", "[x](https://example)", '"https://example": the host has no domain'],
    ["an address that is none", "[x](http://)", '"http://": this is no address'],
    ["another protocol", "[x](file:///etc/passwd)", '"file:///etc/passwd": file: is not for a page'],
  ])("goes red on %s", (_, link, fault) => {
    write({ "docs/a.md": `# A\n\n${link}\n`, "docs/b.md": target, "run.ts": "" });
    const { status, stderr } = runLinks(place);
    expect(stderr).toMatch(/^docs\/a\.md:\d+ links to /);
    expect({ status, fault: stderr.trim().split("links to ")[1] }).toEqual({ status: 1, fault });
  });

  it("stays green on links that lead somewhere, and on code that looks like one", () => {
    const links = [
      "[file](b.md) [folder](../docs) [program](../run.ts) [own](#a)",
      "[heading](b.md#what-it-does-and-why) [second](b.md#twice-1) [id](b.md#given)",
      '[page](https://example.org/a_(b)?c=d#e) <https://example.org> [mail](mailto:a@example.org) [title](b.md "of b")',
      "`[x](gone.md)` and ``[`x`](gone.md)``\n\n```md\n[x](gone.md)\n```\n\n<!-- [x](gone.md) -->",
    ];
    write({ "docs/a.md": `# A\n\n${links.join("\n")}\n`, "docs/b.md": target, "run.ts": "" });
    const { stderr, stdout } = runLinks(place);
    expect({ stderr, stdout }).toEqual({ stderr: "", stdout: "10 links in 2 documents checked, 0 errors\n" });
  });

  const target =
    '# B\n\n## What it `does`, and _why_?\n\n## Twice\n\n## Twice\n\n<a id="given"></a>\n\n```md\n## In code\n```\n';

  function write(files: Record<string, string>): void {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(place, path)), { recursive: true });
      writeFileSync(join(place, path), text);
    }
  }
});

function runLinks(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [join(root, "scripts", "links.mjs"), ...args], { encoding: "utf8" });
}
