import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { findCommand } from "../../src/cli/commands/find-command.js";
import { parseCommandLine } from "../../src/cli/commands/parse.js";
import { parseTaskFile } from "../../src/tasks.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const PAGES = ["comparison", "cookbook", "migration", "troubleshooting", "tutorial"].map((name) => `docs/${name}.md`);

/** The blocks of a page in one of these languages. */
const blocksOf = (page: string, languages: string): string[] =>
  [...read(page).matchAll(new RegExp(`^\`\`\`(?:${languages})\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(
    ([, block = ""]) => block,
  );

/** All command lines of Glovebox in the blocks of a page. */
const linesOf = (page: string): string[] =>
  blocksOf(page, "sh|console|yaml").flatMap((block) =>
    [...block.matchAll(/^\s*(?:\$ |- run: )?(?:npx (?:--yes )?)?glovebox (.+)$/gm)].map(([, line = ""]) => line),
  );

/** The words of a line as a shell takes them; what it would fill in is left as it is. */
const wordsOf = (line: string): string[] =>
  [...line.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].map(([word]) => word.replace(/["']/g, ""));

describe("the pages for new users", () => {
  it.each(PAGES)("%s shows only command lines that the program takes", (page) => {
    for (const line of linesOf(page)) {
      const [verb = "", ...args] = wordsOf(line);
      expect(() => parseCommandLine(findCommand(verb), args), line).not.toThrow();
    }
  });

  it("show enough of them for this to mean something", () => {
    expect(PAGES.flatMap(linesOf).length).toBeGreaterThan(20);
  });

  it.each(PAGES)("%s names only verbs and flags that exist, also within a sentence", (page) => {
    const sentences = read(page).replace(/^```[\s\S]*?^```$/gm, "");
    for (const [, line = ""] of sentences.matchAll(/`glovebox ([a-z][^`]*)`/g)) {
      const [verb = "", ...words] = wordsOf(line.split(" -- ")[0] ?? "");
      const { flags } = findCommand(verb);
      const used = words.filter((word) => word.startsWith("--")).map((word) => word.slice(2).split("=")[0]);
      expect([line, used.filter((name) => !flags.some((flag) => flag.name === name))]).toEqual([line, []]);
    }
  });
});

describe("the troubleshooting page", () => {
  const page = read("docs/troubleshooting.md");
  const sources = ["src", "guest"]
    .flatMap((folder) =>
      (readdirSync(join(root, folder), { recursive: true }) as string[]).map((at) => `${folder}/${at}`),
    )
    .filter((path) => /\.(ts|c)$/.test(path))
    .map(read)
    .join("\n");
  /** What other programs print. */
  const FOREIGN =
    /^(Could not resolve host|EAI_AGAIN|ENOTFOUND|not found|Cannot find module|EXDEV: |SyntaxError: |EACCES: )/;
  const symptoms = page.split(/^### /m).slice(1);

  it("has messages that the program prints, word by word", () => {
    const messages = symptoms.flatMap((symptom) =>
      [...(symptom.split("\n")[0] ?? "").matchAll(/`([^`]+)`/g)].map(([, message = ""]) => message),
    );
    const own = messages.filter((message) => / /.test(message) && !FOREIGN.test(message));
    expect(own.length).toBeGreaterThan(20);
    const pieces = own.flatMap((message) => message.split("…").map((piece) => [message, piece.trim()] as const));
    expect(pieces.filter(([, piece]) => piece.length > 3 && !sources.includes(piece))).toEqual([]);
  });

  it("has a reason and a fix for each", () => {
    for (const symptom of symptoms) {
      expect([symptom.split("\n")[0], /^\*\*Why:\*\* \S/m.test(symptom), /^\*\*Fix:\*\*/m.test(symptom)]).toEqual([
        symptom.split("\n")[0],
        true,
        true,
      ]);
    }
  });
});

describe("the migration page", () => {
  const contract = read("contracts/sandbox.ts") + read("contracts/types.ts");
  const cells = [...read("docs/migration.md").matchAll(/^\|[^|]+\| ([^|]+)\|$/gm)].map(([, cell = ""]) => cell);
  const known = (name: string): boolean => new RegExp(`^  (?:readonly )?${name}[?(:]`, "m").test(contract);

  it("has calls and options that exist", () => {
    const calls = cells.flatMap((cell) => [...cell.matchAll(/\bsandbox\.(\w+)/g)].map(([, name = ""]) => name));
    expect(calls.length).toBeGreaterThan(40);
    expect(calls.filter((name) => !known(name))).toEqual([]);
    const options = cells.flatMap((cell) =>
      [...cell.matchAll(/(?:openSandbox|exec|shell|spawn)\((?:"[^"]*", )?\{ ([^`]*) \}\)/g)].flatMap(([, inner = ""]) =>
        inner
          .replace(/\{[^{}]*\{[^{}]*\}[^{}]*\}|\{[^{}]*\}|\[[^\]]*\]/g, "")
          .split(",")
          .map((part) => part.trim().split(":")[0] ?? ""),
      ),
    );
    expect(options.length).toBeGreaterThan(40);
    // The name of the backend, and the options that are a backend's own.
    const others = ["backend", "docker", "daytona"];
    expect(options.filter((name) => !others.includes(name) && !known(name))).toEqual([]);
  });
});

describe("the cookbook", () => {
  test("has workflows that are whole, and keep what somebody else wrote out of command lines", () => {
    const workflows = blocksOf("docs/cookbook.md", "yaml").filter((block) => block.startsWith("name:"));
    expect(workflows).toHaveLength(2);
    for (const workflow of workflows) {
      const { jobs } = parseYaml(workflow) as { jobs: Record<string, { steps: { run?: string; uses?: string }[] }> };
      const steps = Object.values(jobs).flatMap((job) => job.steps);
      expect(steps.every(({ run, uses }) => (run === undefined) !== (uses === undefined))).toBe(true);
      const filled = steps.flatMap(({ run = "" }) => [...run.matchAll(/\$\{\{ ([^}]*) \}\}/g)].map(([, name]) => name));
      expect(filled.filter((name) => name !== "github.event.number")).toEqual([]);
    }
  });

  test("has a task file that is one", async () => {
    const [text = ""] = blocksOf("docs/cookbook.md", "yaml").filter((block) => block.includes("tasks:"));
    const { tasks } = await parseTaskFile(text, "tasks.yaml");
    expect(tasks.map(({ setup }) => setup.taskId)).toEqual(["one", "two"]);
  });
});
