import { execFileSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { KINDS } from "../../src/harness/nodes.js";
import { findImports, withoutComments } from "../architecture/imports.js";
import { createScratch } from "../support/scratch.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const words = KINDS.flatMap(({ name, aliases }) => [name, ...aliases]);

/** Where kinds may be named: their own files, the table, the type of their names, and a blueprint that is written out. */
const MAY_NAME = /^src\/(?:harness\/nodes\/|harness\/nodes\.ts$|harness\/node-types\/|cli\/starter-blueprint\.ts$)/;

/** Lines that compare with a kind by its name, list it as a kind, or switch over kinds. */
function namesOfKinds(source: string): string[] {
  const text = withoutComments(source);
  const quoted = `["'](?:${words.join("|")})["']`;
  const isSwitch = /\bswitch \([^)]*\bkind\)/.test(text);
  const named = new RegExp(`\\bkinds?\\b.*${quoted}|${quoted}.*\\bkinds?\\b${isSwitch ? `|case ${quoted}` : ""}`, "i");
  return text.split("\n").filter((line) => named.test(line));
}

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(folder, name));
}

test("a kind of node is named in its own file and in the table, nowhere else", () => {
  expect(words).toEqual(["command", "preflight", "deterministic", "agent", "agentic", "gate", "validate", "commit"]);
  const files = ["src/harness", "src/cli"].flatMap(sources).filter((file) => !MAY_NAME.test(file));
  expect(files.length).toBeGreaterThan(100);
  const found = files.flatMap((file) =>
    namesOfKinds(readFileSync(join(root, file), "utf8")).map((line) => `${file}: ${line.trim()}`),
  );
  expect(found).toEqual([]);
});

test.each([
  'if (node.kind === "gate") return;',
  'const isCommit = nodes.some(({ kind }) => kind === "commit");',
  'const KINDS = ["command", "agent"];',
  'switch (node.kind) {\n  case "agent":\n    return 1;\n}',
])("the search finds %s", (source) => {
  expect(namesOfKinds(source)).toHaveLength(1);
});

test("reading a blueprint loads nothing of the engine", () => {
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const { specifier, kind } of findImports(readFileSync(join(root, file), "utf8"))) {
      if (kind === "static" && specifier?.startsWith(".")) {
        visit(relative(root, join(root, file, "..", specifier.replace(/\.js$/, ".ts"))));
      }
    }
  };
  visit("src/harness/blueprint.ts");
  expect([...seen]).toContain("src/harness/nodes/gate/run-gate.ts");
  expect([...seen].filter((file) => /^src\/harness\/(?:engine|run|store|agents)\b/.test(file))).toEqual([]);
});

describe("a new kind", () => {
  const PAUSE = `
import { required } from "../../util/schema.js";
import type { NodeBase, NodeSpecBase } from "../node-types.js";
import { fields } from "../schema.js";
import type { NodeKindModule } from "./kind.js";

export interface PauseSpec extends NodeSpecBase {
  kind: "pause" | "wait";
  seconds: string;
}

export interface PauseNode extends NodeBase {
  readonly kind: "pause";
  readonly seconds: string;
}

export const pauseKind: NodeKindModule<PauseSpec, PauseNode> = {
  name: "pause",
  aliases: ["wait"],
  properties: { seconds: required(fields.name) },
  harmless: ["seconds"],
  normalize: ({ seconds }) => ({ seconds }),
  textsOf: () => [],
  run: ({ print }, { id, seconds }) =>
    print(id, "stdout", \`paused \${seconds} s\`).then(({ output }) => ({ status: "success", output })),
};
`;
  const USE = `
import { defineBlueprint, needsOf, type NodeReport, readBlueprint, runBlueprint } from "./src/harness.js";
import type { EngineOptions } from "./src/harness.js";

const { blueprint, faults } = await readBlueprint("name: x\\nnodes: [{ id: a, kind: wait, seconds: '3' }]", "x.yaml");
if (blueprint === undefined) throw new Error(JSON.stringify(faults));
needsOf(defineBlueprint({ name: "x", nodes: [{ id: "a", kind: "pause", seconds: "3" }] }));
const { faults: wrong } = await readBlueprint("name: x\\nnodes: [{ id: a, kind: pause }]", "x.yaml");
const options = { sandbox: {}, context: { results: {}, env: {}, inputs: {} }, onEvent: () => undefined };
const { nodes } = await runBlueprint(blueprint, options as unknown as EngineOptions);
const [report] = nodes as [NodeReport];
console.log(JSON.stringify({ kind: report.kind, output: report.output, wrong: wrong[0]?.message }));
`;

  test("is one file, one row and one word, and every part of the harness knows it", () => {
    const scratch = createScratch();
    try {
      for (const name of ["src", "contracts", "tsconfig.json", "package.json"]) {
        cpSync(join(root, name), join(scratch.path, name), { recursive: true });
      }
      symlinkSync(join(root, "node_modules"), join(scratch.path, "node_modules"));
      const edit = (file: string, ...changes: [string, string][]): void => {
        const path = join(scratch.path, file);
        const text = changes.reduce(
          (all, [from, to]) => {
            expect(all).toContain(from);
            return all.replace(from, to);
          },
          readFileSync(path, "utf8"),
        );
        writeFileSync(path, text);
      };
      writeFileSync(join(scratch.path, "src/harness/nodes/pause.ts"), PAUSE);
      edit(
        "src/harness/nodes.ts",
        ["  readonly commit: typeof", "  readonly pause: typeof pauseKind;\n  readonly commit: typeof"],
        ["commit: commitKind }", "commit: commitKind, pause: pauseKind }"],
        ["import type { AgentUse", 'import { pauseKind } from "./nodes/pause.js";\nimport type { AgentUse'],
      );
      edit("src/harness/node-types/report-types.ts", ['"gate" | "commit"', '"gate" | "commit" | "pause"']);
      writeFileSync(join(scratch.path, "use.ts"), USE);
      const options = { cwd: scratch.path, encoding: "utf8" } as const;
      const project = { extends: "./tsconfig.json", compilerOptions: { noEmit: false }, include: ["use.ts"] };
      writeFileSync(join(scratch.path, "use.json"), JSON.stringify(project));
      const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
      execFileSync(process.execPath, [tsc, "-p", "use.json", "--outDir", "out"], options);
      const printed = execFileSync(process.execPath, ["out/use.js"], options);
      expect(JSON.parse(printed)).toEqual({ kind: "pause", output: "paused 3 s", wrong: "has no seconds" });
    } finally {
      scratch.remove();
    }
  }, 120_000);
});
