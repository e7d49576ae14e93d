import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BLUEPRINT_SCHEMA } from "../src/harness.js";
import { type Bench, createBench } from "./support/cli.js";

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
    expect(stderr).toContain("The cost limit of $1 cannot be kept: codex in node a does not tell what it costs");
  });

  test.each([
    [["blueprint", "check"], "there is no blueprint check"],
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
  expect(stdout).toMatch(/broken +repository +\(has faults/);
  expect(stdout).toMatch(/hello +built-in \(hidden\)/);
  expect(stdout).not.toContain("\u001b[31mmine");
  const json = JSON.parse((await bench.run(["blueprints", "--repo", "repo", "--json"])).stdout) as {
    name: string;
    origin: string;
    isHidden: boolean;
  }[];
  expect(json.find(({ name, origin }) => name === "hello" && origin === "built-in")?.isHidden).toBe(true);
  expect((await bench.run(["blueprints", "-q"])).stdout).toBe("bug-fix\nhello\ntest-and-report\n");
});

describe("glovebox init", () => {
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
    expect(again.stderr).toContain("is there already");
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
