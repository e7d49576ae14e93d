import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import type { SandboxError } from "../../../contracts/errors.js";
import { HARMLESS, MAPS, REACHES_HOST, RENAMED } from "../../../src/harness/blueprint/host-reach.js";
import { scanImports } from "../../../src/harness/blueprint/scan-imports.js";
import {
  BLUEPRINT_SCHEMA,
  findBlueprint,
  listBlueprints,
  loadBlueprint,
  prepareRun,
  runHarness,
} from "../../../src/harness.js";
import type { JsonSchema } from "../../../src/util/schema.js";
import { createRepository, createScratch, git, type Scratch } from "../../support/scratch.js";

let scratch: Scratch = createScratch();
let repo: string;
let env: Record<string, string>;
const marker = globalThis as { ran?: unknown };
beforeEach(() => {
  scratch.remove();
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
  env = { XDG_CONFIG_HOME: join(scratch.path, "config") };
  delete marker.ran;
});
afterAll(() => scratch.remove());

const folder = (place: string = repo): string => join(place, ".glovebox", "blueprints");
/** Programs that a test writes say SELF; written out, the bundle of the tests would put in where the test itself is. */
const inFull = (source: string): string => source.replaceAll("SELF", ["import", "meta", "url"].join("."));
/** Writes a file into the blueprints of the repository, or at a path from its top. */
function put(name: string, text: string, top: string = repo): string {
  const path = name.startsWith("/") ? join(top, name) : join(folder(top), name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, inFull(text));
  return path;
}
/** Code that leaves a mark when it runs. */
const code = (mark: string, head = ""): string =>
  `${head}\nglobalThis.ran = ${mark};\nexport default { name: "code", nodes: [{ kind: "command", id: "a", run: ["true"] }] };\n`;
const load = (name: string, trust?: boolean): ReturnType<typeof loadBlueprint> =>
  loadBlueprint(name, { repoDir: repo, env, ...(trust !== undefined && { trust }) });
async function refusal(call: Promise<unknown>): Promise<SandboxError> {
  const error: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({ code: "permission_denied" });
  return error as SandboxError;
}

describe("code from a repository", () => {
  test("does not run without trust, whether the repository has a remote or not, by name or by path", async () => {
    const path = put("code.mjs", code("1", 'import "./part.mjs";'));
    put("part.mjs", "export {};");
    const error = await refusal(load("code"));
    expect(error.message).toContain(path);
    expect(error.message).toMatch(/sha256 [0-9a-f]{64}/);
    expect(error.message).toContain(join(".glovebox", "blueprints", "part.mjs"));
    expect(error.hint).toContain("--trust");
    await refusal(load(path));
    git(repo, "remote", "add", "origin", "https://example.invalid/x.git");
    await refusal(load("code"));
    await refusal(runHarness({ blueprint: "code", repo, intent: "x", sandboxType: "local" }));
    expect(marker.ran).toBeUndefined();
  });

  test("runs with trust, and from then on without, until a byte of it changes", async () => {
    const path = put("code.mjs", code("1"));
    await load("code", true);
    expect(marker.ran).toBe(1);
    const records = readdirSync(join(scratch.home, "trust")).filter((name) => name.endsWith(".json"));
    expect(records).toHaveLength(1);
    const record = join(scratch.home, "trust", records[0] ?? "");
    expect(statSync(record).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(record, "utf8"))).toMatchObject({ path });
    delete marker.ran;
    expect((await load("code")).source).toBe(path);
    put("code.mjs", code("2"));
    await refusal(load("code"));
    expect(marker.ran).toBeUndefined();
    await load("code", true);
    expect(marker.ran).toBe(2);
    put("code.mjs", code("1"));
    expect((await load("code")).name).toBe("code");
  });

  test.each([
    ["an import", "lib/a.mjs", 'import "../../lib/a.mjs";'],
    ["an import of an import", "lib/b.mjs", 'import "../../lib/a.mjs";'],
    ["an import while it runs", "lib/b.mjs", 'await import("../../lib/b.mjs");'],
    ["what is re-exported", "lib/b.mjs", 'export { default as b } from "../../lib/b.mjs";'],
    ["JSON", "lib/data.json", 'import data from "../../lib/data.json" with { type: "json" };'],
    [
      "a file beside it",
      "lib/data.json",
      'import { readFileSync } from "node:fs"; readFileSync(new URL("../../lib/data.json", SELF));',
    ],
    ["a package of its repository", "node_modules/dep/index.js", 'import "dep";'],
    ["a package that a package needs", "node_modules/deeper/index.js", 'import "dep";'],
    ["what says that .js is a module", "package.json", 'import "../../lib/c.js";'],
  ])("has to be trusted again when %s changes", async (_, changed, head) => {
    put("/lib/a.mjs", 'import "./b.mjs";');
    put("/lib/b.mjs", "export default 1;");
    put("/lib/c.js", "export default 1;");
    put("/lib/data.json", '{"a":1}');
    put("/package.json", '{"type":"module","version":"1"}');
    put("/node_modules/dep/package.json", '{"name":"dep","main":"index.js","dependencies":{"deeper":"1"}}');
    put("/node_modules/dep/index.js", 'require("deeper");');
    put("/node_modules/deeper/package.json", '{"name":"deeper","main":"index.js"}');
    put("/node_modules/deeper/index.js", "module.exports = 1;");
    put("code.mjs", code("1", head));
    await load("code", true);
    expect(marker.ran).toBe(1);
    await load("code");
    if (changed === "package.json") {
      put("/package.json", '{"type":"module","version":"2"}');
      await load("code");
      put("/package.json", '{"type":"commonjs"}');
    } else put(`/${changed}`, `${readFileSync(join(repo, changed), "utf8")} `);
    await refusal(load("code"));
  });

  test("that runs is what was hashed: files that are swapped afterwards are not looked at", async () => {
    put("code.mjs", code('"old " + part', 'import part from "./part.mjs";'));
    put("part.mjs", 'export default SELF.includes("/trust/") ? "private" : "repository";');
    await load("code", true);
    expect(marker.ran).toBe("old private");
    put("late.mjs", "export default 'hashed';");
    put(
      "lazy.mjs",
      'export default { name: "l", nodes: [{ kind: "command", id: "a", exec: async () => ({ output: (await import("./late.mjs")).default }) }] };',
    );
    const [node] = (await load("lazy", true)).nodes;
    put("late.mjs", "globalThis.ran = 'swapped'; export default 'swapped';");
    const exec = node?.kind === "command" ? node.exec : undefined;
    expect(await exec?.({} as never, {} as never, {} as never)).toEqual({ output: "hashed" });
    await refusal(load("lazy"));
    expect(marker.ran).toBe("old private");
  });

  test("that asks for glovebox gets this program, not what the repository calls so", async () => {
    put("/node_modules/glovebox/package.json", '{"name":"glovebox","exports":{"./harness":"./evil.js"}}');
    put("/node_modules/glovebox/evil.js", "globalThis.ran = 'evil'; export const defineBlueprint = (x) => x;");
    put(
      "own.mjs",
      'import { defineBlueprint } from "glovebox/harness"; export default defineBlueprint({ name: "own", nodes: [{ kind: "command", id: "a", run: ["true"] }] });',
    );
    expect((await load("own", true)).name).toBe("own");
    expect(marker.ran).toBeUndefined();
  });

  test.each([
    ["import(name)", 'const name = "./x.mjs"; await import(name);'],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source of a program
    ["import of a template", "const x = 1; await import(`./x${x}.mjs`);"],
    ["import by a URL", 'await import(new URL("./x.mjs", SELF));'],
    ["import by an absolute path", 'import "/etc/x.mjs";'],
    ["import by an absolute path, spelled otherwise", 'import "\\x2fetc/x.mjs";'],
    ["import by a file URL", 'await import("file:///etc/x.mjs");'],
    ["import of data", 'await import("data:text/javascript,1");'],
    ["createRequire", 'import { createRequire } from "node:module"; createRequire(SELF)("./x.cjs");'],
    ["the loader itself", 'import * as m from "module";'],
    ["what lies outside", 'import "../../../x.mjs";'],
    ["a private name", 'import "#inner";'],
    ["a name that no path can spell", 'import "./a%2fb.mjs";'],
  ])("that loads by %s is refused even with trust", async (_, head) => {
    put("code.mjs", code("1", head));
    writeFileSync(join(scratch.path, "x.mjs"), "globalThis.ran = 'outside';");
    await refusal(load("code", true));
    expect(marker.ran).toBeUndefined();
  });

  test.each(["a file", "a folder", "a package"])("%s that is a link is not followed", async (what) => {
    writeFileSync(join(scratch.path, "x.mjs"), "globalThis.ran = 'outside';");
    mkdirSync(join(scratch.path, "outside"));
    writeFileSync(join(scratch.path, "outside", "index.js"), "globalThis.ran = 'outside';");
    put("code.mjs", code("1", what === "a package" ? 'import "dep";' : 'import "../../lib/x.mjs";'));
    if (what === "a file") put("/lib/y", "");
    if (what === "a file") symlinkSync(join(scratch.path, "x.mjs"), join(repo, "lib", "x.mjs"));
    if (what === "a folder") symlinkSync(scratch.path, join(repo, "lib"));
    if (what === "a package") put("/node_modules/y", "");
    if (what === "a package") symlinkSync(join(scratch.path, "outside"), join(repo, "node_modules", "dep"));
    await expect(load("code", true)).rejects.toMatchObject({ code: expect.stringMatching(/permission|confinement/) });
    expect(marker.ran).toBeUndefined();
  });

  test.each([
    ["computes what it loads", "index.js", "module.exports = (path) => import(path);"],
    ["computes what it loads, in a file that it needs", "lib/x.js", "exports.load = (path) => module.require(path);"],
    ["has a loader", "index.js", 'const { createRequire } = require("node:module"); module.exports = createRequire;'],
    ["loads by an absolute path", "lib/x.js", 'require("/etc/x.js");'],
  ])("with a package that %s is refused even with trust", async (_, file, text) => {
    put(
      "/node_modules/dep/package.json",
      '{"name":"dep","exports":{".":{"import":"./index.js"},"./more":"./more/*.js"}}',
    );
    put("/node_modules/dep/index.js", 'module.exports = require("./lib/x");');
    put("/node_modules/dep/lib/x.js", "module.exports = 1;");
    put("/node_modules/dep/tool.js", "module.exports = (path) => require(path);");
    put("code.mjs", code("1", 'import dep from "dep";'));
    await load("code", true);
    put(`/node_modules/dep/${file}`, text);
    const error = await refusal(load("code", true));
    expect(error.message).toContain(join("node_modules", "dep", file));
  });

  test("packages may name their own files and packages by short names", async () => {
    const manifest = {
      name: "dep",
      type: "module",
      exports: "./main.js",
      imports: { "#own": "./own.js", "#far": "far" },
    };
    put("/node_modules/dep/package.json", JSON.stringify(manifest));
    put("/node_modules/dep/main.js", 'import own from "#own"; import far from "#far"; export default own + far;');
    put("/node_modules/dep/own.js", 'export default "own ";');
    put("/node_modules/far/package.json", '{"name":"far","type":"module","main":"far.js"}');
    put("/node_modules/far/far.js", 'export default "far";');
    put("code.mjs", code("dep", 'import dep from "dep";'));
    const shown = [
      join(".glovebox", "blueprints", "code.mjs"),
      "node_modules/dep (3 files)",
      "node_modules/far (2 files)",
    ];
    expect((await refusal(load("code"))).message).toContain(`: ${shown.join(", ")} (sha256`);
    await load("code", true);
    expect(marker.ran).toBe("own far");
    put("/node_modules/far/far.js", 'export default "changed";');
    await refusal(load("code"));
  });

  test("packages that are links within the repository work, as pnpm lays them", async () => {
    const store = "/node_modules/.pnpm/dep@1/node_modules";
    put(
      `${store}/dep/package.json`,
      '{"name":"dep","type":"module","exports":"./main.js","dependencies":{"inner":"1"}}',
    );
    put(`${store}/dep/main.js`, 'export { default } from "inner";');
    put(`${store}/inner/package.json`, '{"name":"inner","type":"module","exports":{"import":"./inner.js"}}');
    put(`${store}/inner/inner.js`, "export default 'linked';");
    symlinkSync(".pnpm/dep@1/node_modules/dep", join(repo, "node_modules", "dep"));
    put("code.mjs", code("dep", 'import dep from "dep";'));
    await load("code", true);
    expect(marker.ran).toBe("linked");
    put(`${store}/inner/inner.js`, "export default 'changed';");
    await refusal(load("code"));
  });
});

describe("where a blueprint comes from", () => {
  const outside = (): string => {
    const path = join(scratch.path, "mine.mjs");
    writeFileSync(path, code('"mine"'));
    return path;
  };

  test("a file outside any repository is the user's own, and runs", async () => {
    await load(outside());
    expect(marker.ran).toBe("mine");
  });

  test("a link into a repository and a link out of one both count", async () => {
    const inside = put("code.mjs", code("1"));
    const into = join(scratch.path, "into.mjs");
    symlinkSync(inside, into);
    await refusal(load(into));
    const out = join(repo, "out.mjs");
    symlinkSync(outside(), out);
    await refusal(load(out));
    const back = join(scratch.path, "back.mjs");
    symlinkSync(out, back);
    await refusal(load(back));
    const through = join(scratch.path, "through");
    symlinkSync(folder(), through);
    await refusal(load(join(through, "code.mjs")));
    expect(marker.ran).toBeUndefined();
  });

  test("a linked worktree, a folder without git that holds .glovebox, and the user's folder in a repository count", async () => {
    put("code.mjs", code("1"));
    git(repo, "add", "-A");
    git(repo, "commit", "--quiet", "-m", "x");
    const tree = join(scratch.path, "tree");
    git(repo, "worktree", "add", "--quiet", tree, "-b", "tree");
    await refusal(loadBlueprint("code", { repoDir: tree, env }));
    const plain = join(scratch.path, "plain");
    const path = put("code.mjs", code("1"), plain);
    await refusal(loadBlueprint("code", { repoDir: plain, env }));
    await refusal(loadBlueprint(path, { env }));
    const config = join(repo, "config");
    mkdirSync(join(config, "glovebox", "blueprints"), { recursive: true });
    writeFileSync(join(config, "glovebox", "blueprints", "kept.mjs"), code("1"));
    await refusal(loadBlueprint("kept", { repoDir: plain, env: { XDG_CONFIG_HOME: config } }));
    expect(marker.ran).toBeUndefined();
  });

  test("nothing from a repository hides what is built in; its path names it", async () => {
    const path = put("bug-fix.mjs", code("1"));
    put("hello.yaml", "name: evil\nnodes:\n  - {id: a, kind: command, run: [x]}\n");
    expect(findBlueprint("bug-fix", { repoDir: repo, env })).toMatchObject({ origin: "built-in" });
    expect((await load("hello", true)).name).toBe("hello");
    expect((await load("bug-fix", true)).name).toBe("bug-fix");
    await refusal(load(path));
    expect(marker.ran).toBeUndefined();
    const user = join(scratch.path, "config", "glovebox", "blueprints");
    mkdirSync(user, { recursive: true });
    writeFileSync(join(user, "hello.yaml"), "name: mine\nnodes:\n  - {id: a, kind: command, run: [x]}\n");
    expect((await load("hello")).name).toBe("mine");
  });

  test.each([".glovebox", ".glovebox/blueprints"])("%s that is a link is refused, not followed", async (path) => {
    const elsewhere = join(scratch.path, "elsewhere");
    put("code.mjs", code("1"), elsewhere);
    mkdirSync(dirname(join(repo, path)), { recursive: true });
    symlinkSync(path === ".glovebox" ? join(elsewhere, ".glovebox") : folder(elsewhere), join(repo, path));
    expect(() => listBlueprints({ repoDir: repo, env })).toThrow("is a symbolic link");
    await expect(load("code", true)).rejects.toMatchObject({ code: "path_confinement" });
    expect(marker.ran).toBeUndefined();
  });

  test.each(["code.mjs", "document.yaml"])("%s that is a link is named, and not read", async (name) => {
    const target = join(scratch.path, name);
    writeFileSync(target, name === "code.mjs" ? code("1") : "name: x\nnodes:\n  - {id: a, kind: command, run: [x]}\n");
    mkdirSync(folder(), { recursive: true });
    symlinkSync(target, join(folder(), name));
    await expect(load(name.split(".")[0] ?? "", true)).rejects.toMatchObject({ code: "path_confinement" });
    expect(marker.ran).toBeUndefined();
  });
});

describe("a document from a repository", () => {
  const document = (sandbox: string, node = ""): string =>
    `name: wish\n${sandbox}\nnodes:\n  - {id: a, kind: command, run: [x]${node}}\n`;
  const wishes: [string, string, string][] = [
    [
      "a path of the host",
      document("sandbox: {mounts: [{source: /root/.ssh, writable: true}]}"),
      "the path /root/.ssh",
    ],
    ["the whole network", document("sandbox: {network: full}"), "the whole network"],
    ["a host", document("sandbox: {allow: [evil.example.org]}"), "the host evil.example.org"],
    ["an image", document("sandbox: {image: evil.example.org/x}"), "the image evil.example.org/x"],
    ["a secret", document("", ", secrets: [AWS_KEY]"), "the secret AWS_KEY"],
    ["an agent", "name: w\nnodes:\n  - {id: a, kind: agent, prompt: p}\n", "the agent claude-code"],
    [
      "a host for an agent",
      "name: w\nnodes:\n  - {id: a, kind: agentic, agent: command, command: [x], prompt: p, network: {allow: [evil.org]}}\n",
      "the host evil.org",
    ],
    [
      "a secret for a repair, by its other name",
      "name: w\nnodes:\n  - {id: g, kind: validate, steps: [{run: [x]}], onFailure: {agent: command, command: [x], secrets: [KEY]}}\n",
      "the secret KEY",
    ],
    [
      "an agent for a repair",
      "name: w\nnodes:\n  - {id: g, kind: gate, checks: [{run: [x]}], onFail: {agent: codex}}\n",
      "the agent codex",
    ],
  ];

  test.each(wishes)("gets not %s without trust, by name or by path, and once with it", async (_, text, message) => {
    const path = put("wish.yaml", text);
    for (const name of ["wish", path]) expect((await refusal(load(name))).message).toContain(message);
    expect((await load("wish", true)).source).toBe(path);
    expect((await load(path)).source).toBe(path);
    put("wish.yaml", `${text}# more\n`);
    await refusal(load("wish"));
    // The same document elsewhere is the user's own.
    const own = join(scratch.path, "wish.yaml");
    renameSync(path, own);
    await load(own);
  });

  test("that wants nothing is read, and gets no key by another agent either", async () => {
    const text = "name: p\nnodes:\n  - {id: a, kind: agent, agent: command, command: [x], prompt: p}\n";
    put("plain.yaml", text);
    expect((await load("plain")).name).toBe("p");
    const options = { blueprint: "plain", repo, intent: "x", sandboxType: "local" };
    expect((await prepareRun(options)).plan.sandbox.network).toBe("none");
    const open = await refusal(prepareRun({ ...options, sandbox: { isolation: "none" } }));
    expect(open.message).toContain("no isolation");
    const secretSource = { ANTHROPIC_API_KEY: "k" };
    const error = await refusal(prepareRun({ ...options, agent: "claude-code", secretSource }));
    expect(error.message).toContain("ANTHROPIC_API_KEY");
    const { warnings } = await prepareRun({ ...options, agent: "claude-code", secretSource, trust: true });
    expect(warnings.join("\n")).toMatch(/trusted from now on: .*plain\.yaml, sha256 [0-9a-f]{64}/);
    await prepareRun({ ...options, agent: "claude-code", secretSource });
  });
});

describe("the table of what reaches the host", () => {
  /** Every field of the schema as the table writes it, each once. */
  function fieldsOf(schema: JsonSchema, at = ""): string[] {
    const field = RENAMED.get(at) ?? at;
    if (REACHES_HOST.has(field) || HARMLESS.has(field)) return [field];
    if (schema.$ref !== undefined)
      return fieldsOf(BLUEPRINT_SCHEMA.$defs?.[schema.$ref.slice("#/$defs/".length)] ?? {}, field);
    if (schema.oneOf !== undefined) return schema.oneOf.flatMap((branch) => fieldsOf(branch, field));
    if (schema.items !== undefined) return fieldsOf(schema.items, `${field}[]`);
    if (MAPS.has(field) && typeof schema.additionalProperties === "object") {
      return fieldsOf(schema.additionalProperties, `${field}{}`);
    }
    if (schema.properties === undefined) return [field];
    return Object.entries(schema.properties).flatMap(([name, inner]) =>
      fieldsOf(inner, field === "" ? name : `${field}.${name}`),
    );
  }

  test("has every field of the schema, and no field that is not there", () => {
    const fields = new Set(fieldsOf(BLUEPRINT_SCHEMA));
    expect(fields.size).toBeGreaterThan(60);
    expect([...fields].filter((field) => !REACHES_HOST.has(field) && !HARMLESS.has(field))).toEqual([]);
    // Those that only a checked blueprint has.
    const made = ["source", "nodes[].checks[].name"];
    const stale = [...REACHES_HOST.keys(), ...HARMLESS].filter((field) => !fields.has(field) && !made.includes(field));
    expect(stale).toEqual([]);
    expect([...REACHES_HOST.keys()].filter((field) => HARMLESS.has(field))).toEqual([]);
  });

  test("a field that it does not know is refused", async () => {
    const { reachOf } = await import("../../../src/harness/blueprint/host-reach.js");
    const blueprint = await load("hello");
    expect(reachOf(blueprint)).toEqual([]);
    const later = { ...blueprint, sandbox: { ...blueprint.sandbox, devices: ["/dev/kvm"] } };
    expect(reachOf(later)).toEqual(["the field sandbox.devices[]"]);
  });
});

test.each([
  [
    'import a from "./a.js"; export * from \'./b.js\'; import("./c.js"); require("./d.js")',
    ["./a.js", "./b.js", "./c.js", "./d.js"],
    0,
  ],
  ['import"./a.js";import{b}from"./b.js";/* import "./no.js" */ // from "./no.js"', ["./a.js", "./b.js"], 0],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source of a program
  ["const t = `a ${await import('./in.js')} ${`${require(x)}`} b`; import('./after.js')", ["./in.js", "./after.js"], 1],
  ["const p = /[\"'`/]/.test(s); import './a.js'; const q = a / b; import './b.js'", ["./a.js", "./b.js"], 0],
  ["x.import(y); o.require(z); const text = 'import(y)'; SELF", [], 0],
  ["import\n(\nname\n)", [], 1],
])("%s imports %j", (source, specifiers, computed) => {
  const found = scanImports(inFull(source));
  expect(found.specifiers).toEqual(specifiers);
  expect(found.computed).toHaveLength(computed);
});

test("trust is the user's: what a repository puts beside it counts for nothing", async () => {
  put("code.mjs", code("1"));
  const error = await refusal(load("code"));
  const sha256 = /sha256 ([0-9a-f]{64})/.exec(error.message)?.[1] ?? "";
  put(`/.glovebox/trust/${sha256}.json`, "{}");
  await refusal(load("code"));
  expect(existsSync(join(scratch.home, "trust", `${sha256}.json`))).toBe(false);
  await load("code", true);
  rmSync(join(scratch.home, "trust"), { recursive: true });
  await refusal(load("code"));
});
