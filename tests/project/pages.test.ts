import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { findCommand } from "../../src/cli/commands/find-command.js";
import { parseCommandLine } from "../../src/cli/commands/parse.js";
import { readBlueprint } from "../../src/harness/blueprint.js";
import { CONFIG_SCHEMA } from "../../src/sandbox/settings/config-schema.js";
import { POLICY_SCHEMA } from "../../src/sandbox/settings/policy-schema.js";
import { parseTaskFile } from "../../src/tasks.js";
import { check } from "../../src/util/schema.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const PAGES = [
  "README.md",
  ...readdirSync(join(root, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

/** The blocks of a page in one of these languages. */
const blocksOf = (page: string, languages: string): string[] =>
  [...read(page).matchAll(new RegExp(`^\`\`\`(?:${languages})\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(
    ([, block = ""]) => block,
  );

/** A page without its blocks. */
const sentencesOf = (page: string): string => read(page).replace(/^```[\s\S]*?^```$/gm, "");

/** All command lines of Glovebox in the blocks of a page. */
const linesOf = (page: string): string[] =>
  blocksOf(page, "sh|console|yaml").flatMap((block) =>
    [...block.matchAll(/^\s*(?:\$ |- run: )?(?:[A-Z_]+=\S+ )?(?:npx (?:--yes )?)?glovebox (.+)$/gm)].map(
      ([, line = ""]) => line,
    ),
  );

/** The words of a line as a shell takes them, without a comment or a second program; what it would fill in is left as it is. */
const wordsOf = (line: string): string[] => {
  const words = [...line.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].map(([word]) => word);
  const end = words.findIndex((word) => /^[#|>]/.test(word));
  return words.slice(0, end < 0 ? undefined : end).map((word) => word.replace(/["']/g, ""));
};

/** All files of a folder that end like this, in one text. */
const textOf = (folder: string, ending: RegExp): string =>
  (readdirSync(join(root, folder), { recursive: true }) as string[])
    .filter((path) => ending.test(path))
    .map((path) => read(join(folder, path)))
    .join("\n");

describe("the pages", () => {
  it.each(PAGES)("%s shows only command lines that the program takes", (page) => {
    for (const line of linesOf(page)) {
      const [verb = "", ...args] = wordsOf(line);
      expect(() => parseCommandLine(findCommand(verb), args), line).not.toThrow();
    }
  });

  it("show enough of them for this to mean something", () => {
    expect(PAGES.flatMap(linesOf).length).toBeGreaterThan(100);
  });

  it.each(PAGES)("%s names only verbs and flags that exist, also within a sentence", (page) => {
    for (const [, line = ""] of sentencesOf(page).matchAll(/`glovebox ([a-z][^`]*)`/g)) {
      const [verb = "", ...words] = wordsOf(line.split(" -- ")[0] ?? "");
      const { flags } = findCommand(verb);
      const used = words.filter((word) => word.startsWith("--")).map((word) => word.slice(2).split("=")[0]);
      expect([line, used.filter((name) => !flags.some((flag) => flag.name === name))]).toEqual([line, []]);
    }
  });
});

describe("the names in the pages", () => {
  const api = textOf("api", /\.ts$/);
  const sources = ["src", "contracts"].map((folder) => textOf(folder, /\.ts$/)).join("\n");
  /** Names of other programs, of expressions, of the reader's own code, and of what isn't exported. */
  const FOREIGN = new Set([
    ...["import", "join", "execFile", "createRequire", "abortSignal", "withExec", "insteadOf", "NPM_TOKEN"],
    ...["changed", "startsWith", "endsWith", "openMyEngine", "findFaults", "toJsonSchema"],
    ...["createAgent", "templateId", "getUrl", "getById", "codeExecutor", "spawnClaudeCodeProcess", "extraPathGrants"],
    "mountPath",
  ]);
  // These name the calls of other tools.
  const pages = PAGES.filter((page) => !["docs/comparison.md", "docs/migration.md"].includes(page));
  const missing = (page: string, names: RegExp, text: string): string[] =>
    [...sentencesOf(page).matchAll(/`([^`\n]+)`/g)]
      .flatMap(([, code = ""]) => [...code.matchAll(names)].map(([name]) => name))
      .filter((name) => !FOREIGN.has(name) && !new RegExp(`\\b${name}\\b`).test(text));

  it.each(pages)("%s names only calls and options that are exported", (page) => {
    const calls = /(?<![\w.'"-])[a-z]\w*(?=\()/g;
    const options = /^[a-z]+[A-Z]\w*$/g;
    expect([...missing(page, calls, api), ...missing(page, options, api)]).toEqual([]);
  });

  it.each(pages)("%s names only environment variables that are used", (page) => {
    expect(missing(page, /\b(?:GLOVEBOX|GITHUB|DAYTONA|VERCEL|DAGGER|DOCKER)_[A-Z_]+\b/g, sources)).toEqual([]);
  });
});

describe("the YAML in the pages", () => {
  const documents = PAGES.flatMap((page) => blocksOf(page, "yaml").map((text) => [page, text] as const));
  const [config = "", policy = ""] = blocksOf("docs/configuration.md", "yaml");

  /** What each block is, by how it looks, and how it is checked. */
  const KINDS: readonly [isOne: (text: string) => boolean, check: (text: string) => unknown][] = [
    [(text) => text === config, (text) => check(parseYaml(text), CONFIG_SCHEMA, "config")],
    [(text) => text.startsWith("# ~/.config/glovebox/"), (text) => check(parseYaml(text), CONFIG_SCHEMA, "config")],
    [(text) => text === policy, (text) => check(parseYaml(text), POLICY_SCHEMA, "policy")],
    [(text) => text.includes("\ntasks:"), (text) => parseTaskFile(text, "tasks.yaml")],
    [(text) => text.includes("\nnodes:"), checkBlueprint],
    [
      (text) => text.startsWith("sandbox:"),
      (text) => checkBlueprint(`version: 1\nname: one\n${text}\nnodes: [{ id: a, kind: command, run: ["true"] }]`),
    ],
    [(text) => text.startsWith("- id:"), (text) => checkBlueprint(`version: 1\nname: one\nnodes:\n${text}`)],
    [(text) => text.includes("\njobs:"), (text) => parseYaml(text)],
  ];

  it.each(documents)("%s has only files that the program takes", async (page, text) => {
    const kind = KINDS.find(([isOne]) => isOne(text));
    if (kind === undefined) throw new Error(`${page} has YAML of no known kind:\n${text}`);
    await kind[1](text);
  });

  async function checkBlueprint(text: string): Promise<void> {
    expect((await readBlueprint(text, "page.yaml")).faults).toEqual([]);
  }
});

describe("the troubleshooting page", () => {
  const page = read("docs/troubleshooting.md");
  const sources = ["src", "guest"].map((folder) => textOf(folder, /\.(ts|c)$/)).join("\n");
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
  const contract = read("contracts/sandbox.ts") + read("contracts/types.ts") + read("contracts/network.ts");
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

  test("has a task file with two tasks", async () => {
    const [text = ""] = blocksOf("docs/cookbook.md", "yaml").filter((block) => block.includes("tasks:"));
    const { tasks } = await parseTaskFile(text, "tasks.yaml");
    expect(tasks.map(({ setup }) => setup.taskId)).toEqual(["one", "two"]);
  });
});
