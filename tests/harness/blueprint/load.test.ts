import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findBlueprint, isBlueprint, listBlueprints, loadBlueprint } from "../../../src/harness.js";
import { createRepository, createScratch, type Scratch } from "../../support/scratch.js";

let scratch: Scratch;
let own: string;
let env: Record<string, string>;
const YAML = "name: NAME\nnodes:\n  - {id: a, kind: command, run: [echo, NAME]}\n";

beforeAll(() => {
  scratch = createScratch();
  own = createRepository(join(scratch.path, "own"));
  env = { XDG_CONFIG_HOME: join(scratch.path, "config") };
  for (const place of [join(own, ".glovebox"), join(scratch.path, "config", "glovebox")]) {
    mkdirSync(join(place, "blueprints"), { recursive: true });
  }
  put(own, "mine.yaml", YAML.replaceAll("NAME", "mine"));
  put(own, "hello.yml", YAML.replaceAll("NAME", "own-hello"));
  const code =
    'globalThis.ran = true; export default { name: "code", nodes: [{ kind: "command", id: "a", exec: () => undefined }] };';
  put(own, "code.mjs", code);
  writeFileSync(
    join(scratch.path, "config", "glovebox", "blueprints", "theirs.json"),
    JSON.stringify({ name: "theirs", nodes: [{ id: "a", kind: "command", run: ["x"] }] }),
  );
});
afterAll(() => scratch.remove());

function put(repo: string, name: string, text: string): string {
  const path = join(repo, ".glovebox", "blueprints", name);
  writeFileSync(path, text);
  return path;
}

describe("a blueprint is found", () => {
  test("by path, then in the repository, then in the user's folder, then among the built-in ones", () => {
    const options = { repoDir: own, env };
    expect(findBlueprint("mine", options)).toMatchObject({ origin: "repository" });
    expect(findBlueprint("theirs", options)).toMatchObject({ origin: "user" });
    expect(findBlueprint("bug-fix", options)).toMatchObject({ origin: "built-in" });
    expect(findBlueprint("hello", options)).toMatchObject({ origin: "built-in" });
    expect(findBlueprint(".glovebox/blueprints/mine.yaml", { cwd: own })).toMatchObject({
      origin: "path",
      name: "mine",
    });
    const names = listBlueprints(options).map(({ name }) => name);
    expect(names).toEqual(["code", "mine", "theirs", "bug-fix", "hello", "test-and-report", "hello"]);
  });

  test("or not, with what may have been meant", () => {
    expect(() => findBlueprint("bugfix", { repoDir: own, env })).toThrow('no blueprint "bugfix"');
    expect(() => findBlueprint("./nothing.yaml", { cwd: own })).toThrow("no blueprint file ./nothing.yaml");
  });

  test("and read, with its file in every message", async () => {
    expect((await loadBlueprint("theirs", { repoDir: own, env })).source).toContain("theirs.json");
    const path = put(own, "wrong.yaml", "name: x\nnodes:\n  - {id: a, kind: commnd}\n");
    await expect(loadBlueprint("wrong", { repoDir: own, env })).rejects.toThrow(
      `${path}:3:19: nodes[0].kind: unknown kind`,
    );
    for (const name of ["bug-fix", "hello", "test-and-report"])
      expect(isBlueprint(await loadBlueprint(name, { repoDir: scratch.path, env }))).toBe(true);
  });
});

test.each([
  ["that exports nothing", "export {};", "exports no blueprint"],
  ["that throws", "throw new Error('at once');", "cannot be loaded: at once"],
  [
    "that is wrong",
    "export const blueprint = { name: 'x', nodes: [{ kind: 'command', id: 'a' }] };",
    "has neither run nor shell",
  ],
])("code %s is told so", async (what, text, message) => {
  const path = put(own, `${what.replaceAll(" ", "-")}.mjs`, text);
  await expect(loadBlueprint(path, { trust: true })).rejects.toThrow(message);
});

test("code that imports what is not there is told what to install", async () => {
  const path = put(own, "imports.mjs", 'import { defineBlueprint } from "no-such-package"; export default {};');
  await expect(loadBlueprint(path, { trust: true })).rejects.toMatchObject({
    hint: expect.stringContaining("npm install"),
  });
});
