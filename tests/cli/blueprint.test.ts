import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BLUEPRINT_SCHEMA, loadBlueprint } from "../../src/harness.js";
import { type Bench, createBench } from "../support/cli.js";
import { createRepository } from "../support/scratch.js";

let bench: Bench;
beforeAll(() => {
  bench = createBench();
});
afterAll(() => bench.remove());

describe("glovebox blueprint", () => {
  test("schema prints the schema and nothing else", async () => {
    const { code, stdout } = await bench.run(["blueprint", "schema"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual(BLUEPRINT_SCHEMA);
  });

  test("validate says valid, or every fault on a line of its own with file, line and path, and exits with 2", async () => {
    expect(await bench.run(["blueprint", "validate", "bug-fix", "hello"])).toMatchObject({
      code: 0,
      stdout: "bug-fix: valid\nhello: valid\n",
    });
    writeFileSync(
      join(bench.path, "b.yaml"),
      "name: x\nnodes:\n  - {id: a, kind: command, run: [x], tiemout: 3s}\n  - {id: a, kind: x}\n",
    );
    const { code, stdout, stderr } = await bench.run(["blueprint", "validate", "b.yaml"]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr.trimEnd().split("\n")).toEqual([
      "b.yaml:3:38: nodes[0].tiemout: unknown field; did you mean timeout?",
      expect.stringContaining('b.yaml:4:19: nodes[1].kind: unknown kind: "x" is not one of'),
    ]);
    const json = await bench.run(["blueprint", "validate", "b.yaml", "--json"]);
    expect(json.code).toBe(2);
    expect(JSON.parse(json.stdout)).toMatchObject([
      { isValid: false, faults: [{ line: 3, path: "nodes[0].tiemout" }, { line: 4 }] },
    ]);
  });

  test("validate also refuses what no agent can keep", async () => {
    writeFileSync(
      join(bench.path, "cost.yaml"),
      "name: x\nlimits: {costUsd: 1}\nnodes:\n  - {id: a, kind: agent, agent: codex, prompt: p}\n",
    );
    const { code, stderr } = await bench.run(["blueprint", "validate", "cost.yaml"]);
    expect(code).toBe(2);
    expect(stderr).toContain("The cost limit of $1 cannot be enforced: codex in node a does not report what it costs");
  });

  test.each(["plain", "plain.txt", "plain.yaml.bak"])(
    "validate never runs %s, which no ending calls code",
    async (name) => {
      const marker = join(bench.path, `ran-${name}`);
      writeFileSync(
        join(bench.path, name),
        `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(marker)}, "");\n`,
      );
      const { code, stderr } = await bench.run(["blueprint", "validate", `./${name}`, "--json"]);
      expect({ code, isRun: existsSync(marker) }).toEqual({ code: 2, isRun: false });
      expect(stderr).toBe("");
      const refused = await bench.run(["blueprint", "validate", `./${name}`]);
      expect(refused.stderr).toMatch(/neither that of a document nor of code; rename it: \.yaml,.*\.mjs/);
      await expect(loadBlueprint(`./${name}`, { cwd: bench.path })).rejects.toMatchObject({ code: "invalid_argument" });
    },
  );

  test.each([
    [["blueprint", "check"], '"check" is neither validate nor schema'],
    [["blueprint", "validate"], "needs a name or a file"],
    [["blueprint", "schema", "x"], "takes no name"],
  ])("%j is a line that cannot be understood", async (args, message) => {
    const { code, stderr } = await bench.run(args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  test("a blueprint that is not there is told with those that are", async () => {
    const { code, stderr } = await bench.run(["blueprint", "validate", "bugfix"]);
    expect(code).not.toBe(0);
    expect(stderr).toContain("did you mean bug-fix?");
  });
});

test("glovebox blueprints lists what there is, and what hides what", async () => {
  const repo = join(bench.path, "repo", ".glovebox", "blueprints");
  mkdirSync(repo, { recursive: true });
  writeFileSync(
    join(repo, "hello.yaml"),
    'name: hello\ndescription: "\\e[31mmine"\nnodes: [{id: a, kind: command, run: [x]}]\n',
  );
  writeFileSync(join(repo, "broken.yaml"), "name: [\n");
  const { stdout } = await bench.run(["blueprints", "--repo", "repo"]);
  expect(stdout).toMatch(/broken +repository +\(has errors/);
  expect(stdout).toMatch(/hello +built-in +Say hello/);
  expect(stdout).toMatch(/hello +repository \(hidden\)/);
  expect(stdout).not.toContain("\u001b[31mmine");
  const json = JSON.parse((await bench.run(["blueprints", "--repo", "repo", "--json"])).stdout) as {
    name: string;
    origin: string;
    isHidden: boolean;
  }[];
  expect(json.find(({ name, origin }) => name === "hello" && origin === "built-in")?.isHidden).toBe(false);
  expect(json.find(({ name, origin }) => name === "hello" && origin === "repository")?.isHidden).toBe(true);
  expect((await bench.run(["blueprints", "-q"])).stdout).toBe("bug-fix\nhello\ntest-and-report\n");
});

describe("a blueprint that a repository brings along", () => {
  const mark = (name: string): string => join(bench.path, `${name}.ran`);
  /** A repository with a blueprint that is code and leaves a mark when it runs. */
  function plant(name: string): string {
    const repo = createRepository(join(bench.path, `repo-${name}`));
    const folder = join(repo, ".glovebox", "blueprints");
    mkdirSync(folder, { recursive: true });
    const write = `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(mark(name))}, "");`;
    const blueprint = '{ name: "p", nodes: [{ kind: "command", id: "a", run: ["true"] }] }';
    for (const file of ["planted.mjs", "bug-fix.mjs"])
      writeFileSync(join(folder, file), `${write}\nexport default ${blueprint};\n`);
    return repo;
  }

  test("is not run by run, by validate or by a list; the refusal shows files, hash and flag", async () => {
    const repo = plant("shown");
    const path = join(repo, ".glovebox", "blueprints", "planted.mjs");
    const lines = [
      ["run", "planted", "--repo", repo, "-m", "x"],
      ["run", path, "--repo", repo, "-m", "x", "--dry-run"],
      ["blueprint", "validate", "planted", "--repo", repo],
      ["blueprint", "validate", path],
    ];
    for (const line of lines) {
      const { code, stderr } = await bench.run(line);
      expect(code).not.toBe(0);
      expect(stderr).toContain(join(".glovebox", "blueprints", "planted.mjs"));
      expect(stderr).toMatch(/sha256 [0-9a-f]{64}/);
      expect(stderr).toContain("--trust");
    }
    expect((await bench.run(["blueprints", "--repo", repo])).stdout).toMatch(/planted +repository +\(code\)/);
    expect((await bench.run(["blueprint", "validate", "bug-fix", "--repo", repo])).code).toBe(0);
    expect(existsSync(mark("shown"))).toBe(false);
  });

  test("runs with --trust, says what was trusted, and needs the flag no more", async () => {
    const repo = plant("trusted");
    const trusted = await bench.run(["blueprint", "validate", "planted", "--repo", repo, "--trust"]);
    expect(trusted.code).toBe(0);
    expect(trusted.stderr).toMatch(/trusted from now on: .*planted\.mjs with .*planted\.mjs, sha256 [0-9a-f]{64}/);
    expect(existsSync(mark("trusted"))).toBe(true);
    expect(await bench.run(["run", "planted", "--repo", repo, "-m", "x", "-q"])).toMatchObject({ code: 0 });
  });

  test("may be looked at as a document, whatever it wants", async () => {
    const repo = plant("wish");
    const wish = "name: w\nsandbox: {network: full}\nnodes:\n  - {id: a, kind: command, run: [sh]}\n";
    writeFileSync(join(repo, ".glovebox", "blueprints", "wish.yaml"), wish);
    expect((await bench.run(["blueprint", "validate", "wish", "--repo", repo])).code).toBe(0);
    const { code, stderr } = await bench.run(["run", "wish", "--repo", repo, "-m", "x"]);
    expect(code).toBe(3);
    expect(stderr).toContain("wants the whole network");
  });
});

describe("glovebox init", () => {
  test("follows no link that the repository brings along, and takes no name of a built-in one", async () => {
    const elsewhere = join(bench.path, "elsewhere");
    mkdirSync(elsewhere);
    const project = join(bench.path, ".glovebox");
    symlinkSync(elsewhere, project);
    const { code, stderr } = await bench.run(["init"]);
    expect([code, readdirSync(elsewhere)]).toEqual([1, []]);
    expect(stderr).toContain("is a symbolic link");
    rmSync(project);
    mkdirSync(join(project, "blueprints"), { recursive: true });
    writeFileSync(join(elsewhere, "precious"), "precious");
    symlinkSync(join(elsewhere, "precious"), join(project, "blueprints", "first.yaml"));
    symlinkSync(join(elsewhere, "precious"), join(project, "blueprint.schema.json"));
    symlinkSync(join(elsewhere, "new"), join(project, ".gitignore"));
    expect((await bench.run(["init", "--force"])).code).toBe(0);
    expect(readdirSync(elsewhere)).toEqual(["precious"]);
    expect(readFileSync(join(elsewhere, "precious"), "utf8")).toBe("precious");
    rmSync(project, { recursive: true });
    expect((await bench.run(["init", "bug-fix"])).stderr).toContain("built-in");
  });

  test("writes a blueprint that is valid, its schema, and an ignore rule; it writes over nothing", async () => {
    expect(await bench.run(["init"])).toMatchObject({ code: 0, stdout: ".glovebox/blueprints/first.yaml\n" });
    const file = join(bench.path, ".glovebox", "blueprints", "first.yaml");
    expect(readFileSync(file, "utf8")).toMatch(/^# yaml-language-server: \$schema=\.\.\/blueprint\.schema\.json\n/);
    expect(JSON.parse(readFileSync(join(bench.path, ".glovebox", "blueprint.schema.json"), "utf8"))).toEqual(
      BLUEPRINT_SCHEMA,
    );
    expect(readFileSync(join(bench.path, ".glovebox", ".gitignore"), "utf8")).toBe("runs/\n");
    expect(await bench.run(["blueprint", "validate", "first"])).toMatchObject({ code: 0 });
    writeFileSync(file, "mine");
    const again = await bench.run(["init"]);
    expect(again.code).toBe(1);
    expect(again.stderr).toContain("exists already");
    expect(readFileSync(file, "utf8")).toBe("mine");
    expect((await bench.run(["init", "--force"])).code).toBe(0);
  });

  test("copies a built-in one under a name of one's own", async () => {
    expect((await bench.run(["init", "fix-it", "--from", "bug-fix"])).code).toBe(0);
    expect(await bench.run(["blueprint", "validate", "fix-it"])).toMatchObject({ code: 0 });
    expect(readFileSync(join(bench.path, ".glovebox", "blueprints", "fix-it.yaml"), "utf8")).toContain(
      "\nname: fix-it\n",
    );
    expect((await bench.run(["init", "../x"])).code).toBe(2);
  });
});
