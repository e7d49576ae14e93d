import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ERROR_CODES } from "../../contracts/errors.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const script = join(root, "scripts", "docs.mjs");
const documents = [
  ...["AGENTS.md", "CHANGELOG.md", "README.md", "SECURITY.md"],
  ...readdirSync(join(root, "docs")).map((name) => join("docs", name)),
];
const read = (path: string): string => readFileSync(join(root, path), "utf8");

describe("the documents", () => {
  it("show only TypeScript that is cut from programs, as it is now", () => {
    const { status, stdout, stderr } = runDocs("--check");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(Number(/^(\d+) snippets/.exec(stdout)?.[1])).toBeGreaterThan(5);
  });

  it("cut only from programs of the folder whose programs are all run", () => {
    const sources = documents.flatMap((path) => [...read(path).matchAll(/<!-- snippet: (\S+) -->/g)]);
    expect(sources.map(([, source = ""]) => source).filter((source) => !source.startsWith("examples/"))).toEqual([]);
  });

  it("have one row for each error code, and no others", () => {
    const rows = [...read("docs/errors.md").matchAll(/^\| `([a-z_]+)` *\|([^|]+)\|([^|]+)\|$/gm)];
    expect(rows.map(([, code]) => code).sort()).toEqual([...ERROR_CODES].sort());
    for (const [, code, cause, fix] of rows) {
      expect([code, cause?.trim() !== "", fix?.trim() !== ""]).toEqual([code, true, true]);
    }
  });

  it.each(documents)("%s names only files, commands and cases that exist", (path) => {
    const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
    const words = [...read(path).matchAll(/`([^`\n]+)`/g)].map(([, word = ""]) => word);
    const files = words.filter((word) =>
      /^(?:src|tests|examples|docs|scripts|contracts|guest|bench|site)\/[\w./-]+\.\w+$/.test(word),
    );
    // The one name that stands for any.
    expect(files.filter((file) => file !== "src/x.ts" && !existsSync(join(root, file)))).toEqual([]);
    const commands = words.flatMap((word) => /^npm run ([\w:]+)/.exec(word)?.[1] ?? []);
    expect(commands.filter((command) => !(command in scripts))).toEqual([]);
  });
});

describe("the words of the documents", () => {
  /** Words that readers stumbled over, and what to write instead. `wall` is also the name of a limit. */
  const RETIRED = {
    "mend(s|ed|ing)?": "fix",
    shall: "will, or an instruction",
    begun: "started",
    walls: "isolation",
    "what holds": "what is enforced",
    "goes? on": "continue",
    "believed nothing": "treated as untrusted",
  };

  it.each(documents.filter((path) => path !== "CHANGELOG.md"))("%s has none that are retired", (path) => {
    const text = read(path);
    const found = Object.entries(RETIRED).flatMap(([word, instead]) =>
      [...text.matchAll(new RegExp(`\\b${word}\\b`, "gi"))].map(([each]) => `${each}: write ${instead}`),
    );
    expect(found).toEqual([]);
  });
});

describe("npm run docs", () => {
  let place: string;
  const stale = "# A\n\n<!-- snippet: examples/a.ts#one -->\n\n```ts\nold\n```\n\nMore $& text.\n";

  beforeEach(() => {
    place = mkdtempSync(join(tmpdir(), "glovebox-docs-"));
    for (const folder of ["docs", "examples"]) mkdirSync(join(place, folder));
    writeFileSync(
      join(place, "examples", "a.ts"),
      "if (x) {\n  // #region one\n  a(`$&`);\n\n  b();\n  // #endregion one\n}\n",
    );
    writeFileSync(join(place, "README.md"), "nothing\n");
    writeFileSync(join(place, "docs", "a.md"), stale);
  });
  afterEach(() => rmSync(place, { recursive: true, force: true }));

  it("says which document is out of date, and writes nothing when it only looks", () => {
    const { status, stderr } = runDocs("--check", place);
    expect({ status, stderr }).toEqual({ status: 1, stderr: "docs/a.md has an outdated snippet: run npm run docs\n" });
    expect(readFileSync(join(place, "docs", "a.md"), "utf8")).toBe(stale);
  });

  it("brings it up to date, without the indent", () => {
    expect(runDocs(place).status).toBe(0);
    expect(readFileSync(join(place, "docs", "a.md"), "utf8")).toBe(stale.replace("old", () => "a(`$&`);\n\nb();"));
    expect(runDocs("--check", place).status).toBe(0);
  });

  it("fills an empty block", () => {
    writeFileSync(join(place, "docs", "a.md"), stale.replace("old\n", ""));
    expect(runDocs(place).status).toBe(0);
    expect(readFileSync(join(place, "docs", "a.md"), "utf8")).toBe(stale.replace("old", () => "a(`$&`);\n\nb();"));
  });

  it("makes a block that is missing, and misses it when it only looks", () => {
    writeFileSync(join(place, "docs", "a.md"), stale.replace("```ts\nold\n```\n\n", ""));
    expect(runDocs("--check", place).status).toBe(1);
    expect(runDocs(place).status).toBe(0);
    expect(readFileSync(join(place, "docs", "a.md"), "utf8")).toBe(stale.replace("old", () => "a(`$&`);\n\nb();"));
  });

  it("refuses TypeScript from nowhere, and a region that is not there", () => {
    writeFileSync(join(place, "docs", "a.md"), `${stale.replace("#one", "#two")}\n\`\`\`ts\nloose\n\`\`\`\n`);
    const { status, stderr } = runDocs("--check", place);
    expect(status).toBe(1);
    expect(stderr.trim().split("\n")).toEqual([
      "docs/a.md uses the region two, which examples/a.ts does not have",
      "docs/a.md has a block of TypeScript without a snippet comment",
    ]);
  });
});

function runDocs(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [script, ...args], { encoding: "utf8" });
}
