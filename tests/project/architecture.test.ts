import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { findForbidden } from "../architecture/forbidden-words.js";
import { findImports } from "../architecture/imports.js";
import { type Files, findCrowdedFolders, findFaults, findSharedNames } from "../architecture/rules.js";
import { SHARED_NAMES } from "../architecture/shared-names.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

describe("the shape of the code", () => {
  it("has no wrong arrow, cycle, open room, heavy root, vague or shared name, or overlong file", () => {
    const files = readSources();
    expect(Object.keys(files).length).toBeGreaterThan(2);
    expect(findFaults(files)).toEqual([]);
  });

  it("lists no name as shared that is declared once", () => {
    const shared = findSharedNames(readSources());
    expect(Object.keys(SHARED_NAMES).filter((name) => !shared.has(name))).toEqual([]);
  });

  it("has no folder with more files than one can look through", () => {
    const paths = ["contracts", "src", "tests"].flatMap((folder) => walk(join(root, folder)));
    expect(paths.length).toBeGreaterThan(500);
    expect(findCrowdedFolders(paths.map((path) => relative(root, path)))).toEqual([]);
  });

  it("resolves every relative import to a file", () => {
    const missing = Object.entries(readSources()).flatMap(([file, text]) =>
      file.endsWith(".ts")
        ? findImports(text)
            .filter(({ specifier }) => specifier?.startsWith("."))
            .map(({ specifier }) => join(root, dirname(file), specifier ?? "").replace(/\.js$/, ".ts"))
            .filter((path) => !existsSync(path))
        : [],
    );
    expect(missing).toEqual([]);
  });

  it("names no machine and no package host in a tracked file", ({ skip }) => {
    if (!existsSync(join(root, ".git"))) skip("this is no git checkout, so no file is tracked");
    const tracked = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" })
      .split("\0")
      .filter(Boolean);
    const present = tracked.filter((file) => existsSync(join(root, file)));
    expect(present).toContain("package.json");
    expect(present.flatMap((file) => findForbidden(file, readFileSync(join(root, file), "utf8")))).toEqual([]);
  });
});

describe("the checker goes red on", () => {
  const wrong: Record<string, [Files, string]> = {
    "an arrow that points up": [
      { "src/util/path.ts": 'import { open } from "../sandbox/portable.js";', "src/sandbox/portable.ts": "" },
      "wrong arrow: src/util/path.ts (util) imports src/sandbox/portable.ts (sandbox)",
    ],
    "an arrow that points up by a type": [
      { "contracts/types.ts": 'import type { A } from "../src/util/a.js";', "src/util/a.ts": "" },
      "wrong arrow: contracts/types.ts (contracts) imports src/util/a.ts (util)",
    ],
    "a neighbour in the room": [
      { "src/tasks.ts": 'export { a } from "./sandbox/kept.js";', "src/sandbox.ts": "", "src/sandbox/kept.ts": "" },
      "src/tasks.ts imports the room src/sandbox/kept.ts",
    ],
    "a neighbour in the room of a backend": [
      {
        "src/sandbox/portable.ts": 'import { a } from "./local/worktree.js";',
        "src/sandbox/local.ts": "",
        "src/sandbox/local/worktree.ts": "",
      },
      "src/sandbox/portable.ts imports the room src/sandbox/local/worktree.ts",
    ],
    "a cycle": [
      { "src/util/a.ts": 'import { b } from "./b.js";', "src/util/b.ts": 'import { a } from "./a.js";' },
      "cycle: src/util/a.ts -> src/util/b.ts -> src/util/a.ts",
    ],
    "a backend that imports another": [
      { "src/sandbox/docker.ts": 'import { a } from "./local.js";', "src/sandbox/local.ts": "" },
      "backend docker imports backend local: src/sandbox/docker.ts imports src/sandbox/local.ts",
    ],
    "a backend loaded outside the registry": [
      { "src/sandbox.ts": 'const a = await import("./sandbox/local.js");', "src/sandbox/local.ts": "" },
      "src/sandbox.ts loads backend local; only src/sandbox/registry.ts may",
    ],
    "a container engine loaded outside its registry": [
      {
        "src/tasks/batch.ts": 'const a = await import("../sandbox/backends/docker/container-engine.js");',
        "src/sandbox.ts": "",
        "src/sandbox/backends/docker.ts": "",
        "src/sandbox/backends/docker/container-engine.ts": "",
      },
      "src/tasks/batch.ts loads backend docker; only src/tasks/manager-registry.ts may",
    ],
    "a container engine imported at load time": [
      {
        "src/tasks/manager-registry.ts": 'import { a } from "../sandbox/backends/docker/container-engine.js";',
        "src/sandbox.ts": "",
        "src/sandbox/backends/docker/container-engine.ts": "",
      },
      "src/tasks/manager-registry.ts imports the room src/sandbox/backends/docker/container-engine.ts",
    ],
    "an adapter that imports another": [
      { "src/adapters/mastra.ts": 'import { a } from "./ai-sdk.js";', "src/adapters/ai-sdk.ts": "" },
      "src/adapters/mastra.ts imports the adapter ai-sdk",
    ],
    "an adapter below the root entry": [
      { "src/index.ts": 'export { a } from "./adapters/ai-sdk.js";', "src/adapters/ai-sdk.ts": "" },
      "src/index.ts imports the adapter ai-sdk",
    ],
    "a backend's name outside its own place": [
      { "src/cli/verbs/x.ts": 'if (backend === "docker") go(); // "local" in a comment' },
      "src/cli/verbs/x.ts names the backend docker",
    ],
    "a backend's options outside its own place": [
      { "src/sandbox/open.ts": "const { apiKey } = opts.daytona ?? {};" },
      "src/sandbox/open.ts names the backend daytona",
    ],
    "an import of an expression": [
      { "src/sandbox/open.ts": "await import(name);" },
      "src/sandbox/open.ts imports an expression",
    ],
    "an SDK below the root entry": [
      {
        "src/index.ts": 'export { a } from "./sandbox/docker.js";',
        "src/sandbox/docker.ts": 'import Docker from "dockerode";',
      },
      "the root entry reaches src/index.ts -> src/sandbox/docker.ts -> dockerode",
    ],
    "a file too long": [{ "guest/main.c": "int x;\n".repeat(401) }, "guest/main.c has 401 lines, more than 400"],
    "a name that says nothing": [{ "src/util/helpers.ts": "" }, "src/util/helpers.ts is named after no job"],
    "a second index": [{ "src/util/index.ts": "" }, "src/util/index.ts is named after no job"],
    "a default export": [{ "src/util/a.ts": "export default 1;" }, "src/util/a.ts has a default export"],
    "two exported types of one name": [
      {
        "src/util/a.ts": "export interface Ticket {}\nexport type Own = 1;",
        "contracts/a.ts": "export abstract class Ticket {}\ninterface Own {}",
      },
      "several exported types are named Ticket: src/util/a.ts, contracts/a.ts",
    ],
    "a file outside the layers": [{ "src/stuff/a.ts": "" }, "src/stuff/a.ts belongs to no layer"],
  };

  it.each(Object.entries(wrong))("%s", (_, [files, fault]) => {
    expect(findFaults(files)).toEqual([fault]);
  });

  it("a folder with too many files", () => {
    const names = [...Array(26).keys()];
    const paths = ["src/util", "tests/support", "src/cli/verbs", "tests/testing/cases"].flatMap((folder) =>
      names.map((name) => `${folder}/${name}.ts`),
    );
    const full = names.slice(1).map((name) => `src/cli/${name}.ts`);
    expect(findCrowdedFolders([...paths, ...full])).toEqual([
      "src/util has 26 files, more than 25",
      "tests/support has 26 files, more than 25",
    ]);
  });

  it("the name of a machine's folder or a package host", () => {
    const folder = ["", "work", "main", ""].join("/");
    const host = ["registry", "npmjs", "org"].join(".");
    expect(findForbidden("a.md", `see ${folder}\nfine: src/network/here\nfrom https://${host}/x`)).toHaveLength(2);
  });
});

describe("the checker stays green on", () => {
  it("what the layers allow", () => {
    const files: Files = {
      "contracts/types.ts": "export interface A {}",
      "src/util.ts":
        'export type { A } from "../contracts/types.js"; export { type A as B } from "../contracts/types.js";',
      "src/util/path.ts": 'import { posix } from "node:path"; import { E } from "../../contracts/errors.js";',
      "contracts/errors.ts": "",
      "src/sandbox.ts": 'export { open } from "./sandbox/open.js";',
      "src/sandbox/open.ts": 'import { load } from "./registry.js";',
      "src/sandbox/registry.ts": 'await import("./docker.js"); await import(name);',
      "src/sandbox/docker.ts":
        'import type D from "dockerode"; import "./docker/engine.js"; import "./open.js"; await import("dockerode");',
      "src/sandbox/docker/engine.ts": "",
      "src/index.ts": 'export { open } from "./sandbox.js";',
      "guest/main.c": "int x;\n".repeat(400),
    };
    expect(findFaults(files)).toEqual([]);
  });
});

describe("imports are found", () => {
  it("in every form and nowhere else", () => {
    const source = [
      'import {\n  a,\n  type B,\n} from "./a.js";',
      'import type { C } from "./c.js";',
      'export * from "./d.js"; export type { E } from "./e.js";',
      'import "./f.js";',
      "const quote = /['\"`]/; // from './no.js'",
      '/* import x from "./no.js" */ const g = await import("./g.js");',
      "await import(name);",
    ].join("\n");
    expect(findImports(source)).toEqual([
      { specifier: "./a.js", kind: "static" },
      { specifier: "./c.js", kind: "type" },
      { specifier: "./d.js", kind: "static" },
      { specifier: "./e.js", kind: "type" },
      { specifier: "./f.js", kind: "static" },
      { specifier: "./g.js", kind: "dynamic" },
      { specifier: undefined, kind: "dynamic" },
    ]);
  });
});

function readSources(): Files {
  const paths = ["contracts", "src", "guest"].flatMap((folder) => walk(join(root, folder)));
  const kept = paths.map((path) => relative(root, path)).filter((path) => /\.(?:ts|c|h)$/.test(path));
  return Object.fromEntries(kept.map((path) => [path, readFileSync(join(root, path), "utf8")]));
}

function walk(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.name === "node_modules") return [];
    return entry.isDirectory() ? walk(path) : [path];
  });
}
