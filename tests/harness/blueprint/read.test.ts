import { describe, expect, test } from "vitest";
import { SandboxError } from "../../../contracts/errors.js";
import type { AgentDriver, BlueprintSpec, NodeSpec } from "../../../src/harness/types.js";
import {
  agentic,
  blueprint,
  defineBlueprint,
  needsOf,
  readBlueprint,
  resolveInputs,
  resolveSecrets,
  sandboxOptionsOf,
  validate,
} from "../../../src/harness.js";

async function faultsOf(text: string): Promise<string[]> {
  const { faults } = await readBlueprint(text, "b.yaml");
  return faults.map(({ file, line, column, path, message }) =>
    [[file, line, column].filter((part) => part !== undefined).join(":"), path, message].join(" | "),
  );
}

const head = "version: 1\nname: x\nnodes:\n";

describe("a document that is wrong is told with file, line and path:", () => {
  const cases: [string, string, string][] = [
    [
      "a cycle",
      `${head}  - {id: a, kind: command, run: [x], needs: [b]}\n  - {id: b, kind: command, run: [x], needs: [a]}\n`,
      "b.yaml:4:45 | nodes[0].needs | these nodes need each other: a → b → a",
    ],
    [
      "a need of itself",
      `${head}  - {id: a, kind: command, run: [x], needs: [a]}\n`,
      "b.yaml:4:45 | nodes[0].needs | these nodes need each other: a → a",
    ],
    [
      "a duplicate id",
      `${head}  - {id: a, kind: command, run: [x]}\n  - {id: a, kind: command, run: [x]}\n`,
      "b.yaml:5:10 | nodes[1].id | the id a is that of nodes[0] already",
    ],
    [
      "an unknown kind",
      `${head}  - id: a\n    kind: comand\n    run: [x]\n`,
      'b.yaml:5:11 | nodes[0].kind | unknown kind: "comand" is not one of command, preflight, deterministic, agent, agentic, gate, validate, commit; did you mean command?',
    ],
    ["no kind", `${head}  - id: a\n`, "b.yaml:4:5 | nodes[0] | has no kind; it is one of command, preflight"],
    [
      "an unknown field",
      `${head}  - id: a\n    kind: command\n    run: [x]\n    timeot: 3s\n`,
      "b.yaml:7:5 | nodes[0].timeot | unknown field; did you mean timeout?",
    ],
    [
      "an unknown field of another kind",
      `${head}  - {id: a, kind: commit, message: m, prompt: p}\n`,
      "b.yaml:4:39 | nodes[0].prompt | unknown field",
    ],
    [
      "a need of nothing",
      `${head}  - {id: a, kind: command, run: [x], needs: [bb]}\n`,
      "b.yaml:4:46 | nodes[0].needs[0] | there is no node bb",
    ],
    ["no name", "nodes: []\n", "b.yaml:1:1 |  | has no name"],
    ["no nodes", "name: x\nnodes: []\n", "b.yaml:2:8 | nodes | must not be empty"],
    ["a list in place of all", "- a\n", "b.yaml:1:1 |  | must be a mapping"],
    ["nothing at all", "", "b.yaml:1:1 |  | must be a mapping"],
    ["broken YAML", `${head}  - {id: a\n`, "b.yaml:5:1 |  | "],
    ["a key that stands twice", "name: x\nname: y\nnodes: []\n", "b.yaml:2:1 |  | Map keys must be unique"],
    ["broken JSON", '{"name": "x",\n "nodes": [}', "b.yaml:2:12 |  | "],
    [
      "a time without a unit",
      `${head}  - {id: a, kind: command, run: [x], timeout: "30"}\n`,
      'b.yaml:4:47 | nodes[0].timeout | "30" is not of the form',
    ],
    [
      "neither program nor script",
      `${head}  - {id: a, kind: command}\n`,
      "b.yaml:4:5 | nodes[0] | has neither run nor shell",
    ],
    [
      "both program and script",
      `${head}  - {id: a, kind: command, run: [x], shell: y}\n`,
      "b.yaml:4:5 | nodes[0] | has both run and shell",
    ],
    ["no id", `${head}  - {kind: command, run: [x]}\n`, "b.yaml:4:5 | nodes[0] | has no id"],
    ["a gate without checks", `${head}  - {id: a, kind: gate}\n`, "b.yaml:4:5 | nodes[0] | has no checks"],
    [
      "a value of a secret",
      `${head}  - {id: a, kind: command, run: [x], secrets: ["TOKEN=abc"]}\n`,
      "b.yaml:4:48 | nodes[0].secrets[0] | ",
    ],
    [
      "an agent without its program",
      `${head}  - {id: a, kind: agent, agent: command, prompt: p}\n`,
      "b.yaml:4:5 | nodes[0] | agent: command needs the program",
    ],
    [
      "a session that is not there",
      `${head}  - {id: a, kind: agent, prompt: p, continue: z}\n`,
      "b.yaml:4:47 | nodes[0].continue | there is no agent node z before",
    ],
    ["another version", "version: 2\nname: x\nnodes: []\n", "b.yaml:1:10 | version | must be 1, not 2"],
  ];
  test.each(cases)("%s", async (_what, text, fault) => {
    expect(await faultsOf(text)).toEqual(expect.arrayContaining([expect.stringContaining(fault)]));
  });

  test("all faults at once", async () => {
    expect(await faultsOf("nam: x\nnodes:\n  - {id: 7, kind: command, run: x}\n")).toHaveLength(4);
  });

  test("a bomb of aliases", async () => {
    const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${["b", "c", "d", "e", "f", "g"].map((name, at) => `${name}: &${name} [${`*${"abcdef"[at]},`.repeat(9)}]`).join("\n")}\n`;
    expect(await faultsOf(bomb)).toEqual([expect.stringContaining("alias")]);
  });

  test("a document beyond all measure", async () => {
    expect(await faultsOf(`name: ${"x".repeat(2_000_000)}`)).toEqual([expect.stringContaining("is larger than")]);
  });
});

describe("a template or condition", () => {
  const cases: [string, string, string | undefined][] = [
    [
      "names what there is",
      'run: [echo, "{{ intent }} {{ inputs.issue }} {{ env.CI }} {{ nodes.first.output }}"]',
      undefined,
    ],
    ["names nothing", 'run: [echo, "{{ intnet }}"]', "intnet names nothing; did you mean intent?"],
    ["names no input", 'run: [echo, "{{ inputs.isue }}"]', "inputs.isue names nothing; did you mean issue?"],
    [
      "names a node that comes later",
      'run: [echo, "{{ nodes.last.output }}"]',
      "nodes.last.output is not known yet: last does not run before",
    ],
    [
      "names no node",
      'run: [echo, "{{ nodes.frist.output }}"]',
      "nodes.frist.output names nothing; did you mean first?",
    ],
    [
      "names no field",
      'run: [echo, "{{ nodes.first.outptu }}"]',
      "nodes.first.outptu names nothing; did you mean output?",
    ],
    ["is empty", 'run: [echo, "{{ }}"]', '"{{}}" names nothing'],
    ["is not closed", 'run: [echo, "{{ intent"]', "is not closed"],
    ["is of another language", 'run: [docker, ps, "{{.Names}}"]', "text with {{ in it is written {{ '{{' }}"],
    ["is text by intent", `run: [docker, ps, "{{ '{{.Names}}' }}"]`, undefined],
    ["is in a script", "shell: echo {{ intent }}", 'put {{ intent }} into env and use "$NAME"'],
    ["of another language in a script is no concern of ours", "shell: docker ps --format '{{.Names}}'", undefined],
    ["of a gate, elsewhere", 'run: [echo, "{{ gate.failures }}"]', "gate.failures names nothing here"],
    ["calls a function", "run: [x]\n    when: changed('src/**') && nodes.first.status != 'success'", undefined],
    ["calls what is no function", "run: [x]\n    when: evil('rm')", "there is no function evil"],
    ["calls with too much", "run: [x]\n    when: contains('a')", "contains takes 2 arguments, not 1"],
    ["is no expression", "run: [x]\n    when: a = b", '"=" at 3 means nothing'],
    [
      "reaches for the language below",
      "run: [x]\n    when: constructor.constructor",
      "constructor.constructor names nothing",
    ],
  ];
  test.each(cases)("that %s", async (_what, field, message) => {
    const text = `name: x\ninputs: {issue: {}}\nnodes:\n  - {id: first, kind: command, run: [x]}\n  - id: a\n    kind: command\n    ${field}\n  - {id: last, kind: command, run: [x]}\n`;
    const faults = await faultsOf(text);
    if (message === undefined) expect(faults).toEqual([]);
    else expect(faults).toEqual([expect.stringContaining(message)]);
  });
});

test("a document and code make the same blueprint, aliases and durations resolved", async () => {
  const { blueprint: read } = await readBlueprint(
    `name: same
limits: {wall: 2m, costUsd: 1.5}
nodes:
  - {id: check, kind: preflight, run: [git, status], timeout: 1.5s}
  - {id: work, kind: agentic, prompt: "{{ intent }}", allowedTools: [Read]}
  - {id: green, kind: validate, steps: [{name: type check, run: [tsc]}], onFailure: {agent: claude-code}, maxRetries: 1}
  - {id: save, kind: commit, message: done}
`,
    "b.yaml",
  );
  const made = blueprint({
    name: "same",
    limits: { wall: 120_000, costUsd: 1.5 },
    nodes: [
      { kind: "command", id: "check", run: ["git", "status"], timeout: 1_500 },
      agentic({ id: "work", prompt: "{{ intent }}", tools: ["Read"] }),
      validate({ id: "green", checks: [{ id: "type-check", run: ["tsc"] }], onFail: { max: 1 } }),
      { kind: "commit", id: "save", message: "done" },
    ],
  });
  expect(read).toEqual(made);
  expect(made).toMatchObject({ limits: { wall: 120_000, idle: 600_000 }, expectsChanges: true });
  expect(made.nodes.map(({ kind }) => kind)).toEqual(["command", "agent", "gate", "commit"]);
  expect(defineBlueprint({ name: "d", nodes: [{ kind: "command", id: "a", run: ["x"] }] })).toMatchObject({
    limits: { wall: 3_600_000 },
    expectsChanges: false,
  });
});

test("code that is wrong is told with its path", () => {
  const wrong = {
    name: "x",
    nodes: [{ kind: "command", id: "a", run: ["x"], exce: () => undefined }],
  } as unknown as BlueprintSpec;
  expect(() => defineBlueprint(wrong)).toThrow("nodes[0].exce: unknown field");
  expect(() =>
    defineBlueprint({ name: "x", nodes: [{ kind: "command", id: "a", exec: () => undefined, run: ["x"] }] }),
  ).toThrow("has both");
});

describe("what a blueprint needs", () => {
  const ask = (more: Record<string, unknown> = {}): NodeSpec =>
    ({ kind: "agent", id: "work", prompt: "p", ...more }) as NodeSpec;

  test("is the union over its nodes, with what each agent needs, and nothing else", () => {
    const made = defineBlueprint({
      name: "x",
      sandbox: { allow: ["packages.example.org"], image: "node:22", setup: [["npm", "ci"]] },
      nodes: [
        ask({ network: { allow: ["docs.example.org"] }, secrets: ["DOCS_TOKEN"] }),
        { kind: "gate", id: "g", checks: [{ id: "t", run: ["x"] }], onFail: { agent: "codex" } },
      ],
    });
    const needs = needsOf(made);
    expect(needs.network).toEqual({
      allow: ["api.anthropic.com", "api.openai.com", "docs.example.org", "packages.example.org"],
    });
    expect(needs.secrets.map(({ nodeId, names }) => `${nodeId}: ${names.join("|")}`)).toEqual([
      "work: DOCS_TOKEN",
      "work: ANTHROPIC_API_KEY|ANTHROPIC_AUTH_TOKEN|CLAUDE_CODE_OAUTH_TOKEN",
      "g: CODEX_API_KEY|OPENAI_API_KEY",
    ]);
    expect(sandboxOptionsOf(made, needs)).toMatchObject({ image: "node:22", network: needs.network });
    const source = { DOCS_TOKEN: "d", CLAUDE_CODE_OAUTH_TOKEN: "c", OPENAI_API_KEY: "o", PATH: "p", HOME: "h" };
    expect(resolveSecrets(needs, source)).toEqual({
      DOCS_TOKEN: "d",
      CLAUDE_CODE_OAUTH_TOKEN: "c",
      OPENAI_API_KEY: "o",
    });
    expect(() => resolveSecrets(needs, { DOCS_TOKEN: "d" })).toThrow(
      "Node work needs ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN or CLAUDE_CODE_OAUTH_TOKEN, which is not set",
    );
    expect(needsOf(defineBlueprint({ name: "x", nodes: [{ kind: "command", id: "a", run: ["x"] }] })).network).toBe(
      "none",
    );
  });

  test.each([
    [
      "a cost limit without a priced agent",
      ask({ agent: "codex" }),
      { limits: { costUsd: 2 } },
      /cost limit of \$2 cannot be enforced: codex in node work/,
    ],
    ["a cost limit of its own", ask({ agent: "codex", limits: { costUsd: 1 } }), {}, /cannot be enforced/],
    ["a list of tools", ask({ agent: "codex", tools: ["x"] }), {}, /codex does not support tools/],
    ["an agent that does not exist", ask({ agent: "cluade-code" }), {}, /no agent "cluade-code"/],
    ["another agent by choice", ask(), { agent: "codex", limits: { costUsd: 2 } }, /cost limit/],
  ])("is refused when it cannot be kept: %s", (_what, node, choice, message) => {
    const made = defineBlueprint({ name: "x", nodes: [node] });
    expect(() => needsOf(made, choice)).toThrow(message);
    expect(() => needsOf(made, choice)).toThrow(SandboxError);
  });

  test("may be a driver of one's own", () => {
    const driver: AgentDriver = {
      ...{ name: "mine", reportsCost: false, network: ["mine.example.org"], secrets: [["MY_KEY"]], installHint: "" },
      command: ({ prompt }) => ({ argv: ["mine"], stdin: prompt }),
      reader: () => ({ line: () => [], end: () => ({ isError: false, text: "" }) }),
    };
    for (const made of [
      needsOf(defineBlueprint({ name: "x", nodes: [ask({ agent: driver })] })),
      needsOf(defineBlueprint({ name: "x", nodes: [ask({ agent: "mine" })] }), { agents: { mine: driver } }),
    ]) {
      expect(made).toMatchObject({ network: { allow: ["mine.example.org"] }, secrets: [{ names: ["MY_KEY"] }] });
    }
  });
});

test("inputs are read as their types say, and refused otherwise", () => {
  const made = defineBlueprint({
    name: "x",
    inputs: {
      issue: {},
      count: { type: "number", default: 2 },
      deep: { type: "boolean" },
      must: { required: true, description: "what" },
    },
    nodes: [{ kind: "command", id: "a", run: ["x"] }],
  });
  expect(resolveInputs(made, { must: "m", count: "7", deep: "true" })).toEqual({
    issue: "",
    count: 7,
    deep: true,
    must: "m",
  });
  expect(resolveInputs(made, { must: "m" })).toEqual({ issue: "", count: 2, must: "m" });
  expect(() => resolveInputs(made, {})).toThrow("The input must (what) is required");
  expect(() => resolveInputs(made, { must: "m", isue: "x" })).toThrow('no input "isue"');
  expect(() => resolveInputs(made, { must: "m", count: "many" })).toThrow(
    'The input count must be a number, not "many"',
  );
});
