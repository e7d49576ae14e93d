import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findBlueprint, isBlueprint, listBlueprints, loadBlueprint } from "../src/harness.js";
import { createRepository, createScratch, git, type Scratch } from "./support/scratch.js";

let scratch: Scratch;
let own: string;
let cloned: string;
let env: Record<string, string>;
const YAML = "name: NAME\nnodes:\n  - {id: a, kind: command, run: [echo, NAME]}\n";

beforeAll(() => {
  scratch = createScratch();
  own = createRepository(join(scratch.path, "own"));
  cloned = createRepository(join(scratch.path, "cloned"));
  git(cloned, "remote", "add", "origin", "https://example.invalid/x.git");
  env = { XDG_CONFIG_HOME: join(scratch.path, "config") };
  for (const place of [join(own, ".glovebox"), join(cloned, ".glovebox"), join(scratch.path, "config", "glovebox")]) {
    mkdirSync(join(place, "blueprints"), { recursive: true });
  }
  put(own, "mine.yaml", YAML.replaceAll("NAME", "mine"));
  put(own, "hello.yml", YAML.replaceAll("NAME", "own-hello"));
  const code =
    'globalThis.ran = true; export default { name: "code", nodes: [{ kind: "command", id: "a", exec: () => undefined }] };';
  for (const repo of [own, cloned]) put(repo, "code.mjs", code);
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
    expect(findBlueprint("hello", options)).toMatchObject({
      origin: "repository",
      path: join(own, ".glovebox", "blueprints", "hello.yml"),
    });
    expect(findBlueprint(".glovebox/blueprints/mine.yaml", { cwd: own })).toMatchObject({
      origin: "path",
      name: "mine",
    });
    const names = listBlueprints(options).map(({ name }) => name);
    expect(names).toEqual(["code", "hello", "mine", "theirs", "bug-fix", "hello", "test-and-report"]);
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

describe("without trust", () => {
  test("code of one's own runs, code from a cloned repository does not, however it is named", async () => {
    const marker = globalThis as { ran?: boolean };
    await expect(loadBlueprint("code", { repoDir: cloned, env })).rejects.toThrow("is code from a cloned repository");
    const link = join(scratch.path, "link.mjs");
    symlinkSync(join(cloned, ".glovebox", "blueprints", "code.mjs"), link);
    for (const path of [join(cloned, ".glovebox", "blueprints", "code.mjs"), link]) {
      await expect(loadBlueprint(path)).rejects.toMatchObject({
        code: "permission_denied",
        hint: "read it, then say --trust (trust: true)",
      });
    }
    const worktree = join(scratch.path, "tree");
    git(cloned, "add", "-A");
    git(cloned, "commit", "--quiet", "-m", "blueprints");
    git(cloned, "worktree", "add", "--quiet", worktree, "-b", "tree");
    await expect(loadBlueprint("code", { repoDir: worktree, env })).rejects.toThrow("cloned");
    expect(marker.ran).toBeUndefined();
    expect((await loadBlueprint("code", { repoDir: own, env })).name).toBe("code");
    expect(marker.ran).toBe(true);
    expect((await loadBlueprint("code", { repoDir: cloned, env, trust: true })).nodes).toHaveLength(1);
  });

  test.each([
    ["a directory of the host", "sandbox: {mounts: [{source: /root/.ssh}]}", "wants the directory /root/.ssh"],
    ["the whole network", "sandbox: {network: full}", "wants the whole network"],
    ["a host", "sandbox: {allow: [evil.example.org]}", "wants the host evil.example.org"],
    ["a secret", "", "wants the secret AWS_SECRET_ACCESS_KEY"],
  ])("a document from a cloned repository does not get %s", async (_what, sandbox, message) => {
    const secrets = sandbox === "" ? ", secrets: [AWS_SECRET_ACCESS_KEY]" : "";
    const path = put(
      cloned,
      "wish.yaml",
      `name: wish\n${sandbox}\nnodes:\n  - {id: a, kind: command, run: [x]${secrets}}\n`,
    );
    await expect(loadBlueprint("wish", { repoDir: cloned, env })).rejects.toThrow(message);
    expect((await loadBlueprint(path)).name).toBe("wish");
    expect((await loadBlueprint("wish", { repoDir: cloned, env, trust: true })).name).toBe("wish");
  });

  test("a document from a cloned repository that wants nothing of the host is read", async () => {
    put(cloned, "plain.yaml", YAML.replaceAll("NAME", "plain"));
    expect((await loadBlueprint("plain", { repoDir: cloned, env })).name).toBe("plain");
  });
});

test.each([
  ["that exports nothing", "export {};", "exports none"],
  ["that throws", "throw new Error('at once');", "cannot be loaded: at once"],
  [
    "that is wrong",
    "export const blueprint = { name: 'x', nodes: [{ kind: 'command', id: 'a' }] };",
    "has neither run nor shell",
  ],
])("code %s is told so", async (what, text, message) => {
  const path = put(own, `${what.replaceAll(" ", "-")}.mjs`, text);
  await expect(loadBlueprint(path)).rejects.toThrow(message);
});

test("code that imports what is not there is told what to install", async () => {
  const path = put(own, "imports.mjs", 'import { defineBlueprint } from "no-such-package"; export default {};');
  await expect(loadBlueprint(path)).rejects.toMatchObject({ hint: expect.stringContaining("npm install") });
});
