import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BlueprintSpec, loadBlueprint, prepareRun, readBlueprint, resumeRun } from "../../src/harness.js";
import { createHarnessBench, type HarnessBench } from "../support/harness/bench.js";
import { withFakeAgents } from "../support/harness/fake-agents.js";

const TOKEN = "refresh-0123456789abcdef";

let bench: HarnessBench;
let login: string;
beforeAll(async () => {
  bench = await createHarnessBench();
  login = join(bench.scratch.path, "auth.json");
  writeFileSync(login, JSON.stringify({ tokens: { refresh_token: TOKEN }, model: "a-model-of-theirs" }));
});
afterAll(() => bench[Symbol.asyncDispose]());

/** A blueprint with one command and these files. */
function of(shell: string, home: NonNullable<BlueprintSpec["sandbox"]>["home"]): BlueprintSpec {
  return {
    name: "home",
    expectsChanges: false,
    sandbox: { home: home ?? {} },
    nodes: [{ kind: "command", id: "look", shell }],
  };
}

describe("files below HOME", () => {
  test("are there for all nodes, private, from the blueprint or of this machine; also through a link", async () => {
    const link = join(bench.scratch.path, "link.json");
    symlinkSync(login, link);
    const home = { ".config/tool/settings.toml": 'a = "b"\n', ".tool": "", ".codex/auth.json": { file: link } };
    const shell = `cd; cat .config/tool/settings.toml; wc -c < .tool; stat -c %a .codex/auth.json .codex; cat .codex/auth.json`;
    const report = await bench.run({ runId: "files", blueprint: of(shell, home) });
    expect(report.status).toBe("success");
    const [settings, empty, ...rest] = (report.nodes[0]?.output ?? "").split("\n");
    expect([settings, empty, rest[0], rest[1]]).toEqual(['a = "b"', "0", "600", "700"]);
    // It is inside, and the report says so; what it calls a secret is in no log.
    expect(rest.join("\n")).toContain("a-model-of-theirs");
    expect(report.secrets).toEqual([
      { name: "~/.codex/auth.json", kept: "inside", why: `a copy of ${link}, as sandbox.home says` },
    ]);
    for (const name of ["events.jsonl", "report.json", "report.md", "run.json"]) {
      expect(bench.file("files", name)).not.toContain(TOKEN);
    }
  });

  test("are there again when the run is resumed", async () => {
    const blueprint = of("cat ~/.tool; test -e done || { touch done; exit 1; }", { ".tool": "again" });
    expect((await bench.run({ runId: "again", blueprint })).status).toBe("failed");
    expect((await resumeRun({ runId: "again" })).nodes.at(-1)).toMatchObject({ status: "success", output: "again" });
  });

  test("win over what a driver writes in the same place", async () => {
    const { mounts = [], env } = withFakeAgents(join(bench.scratch.path, "agents"));
    const blueprint: BlueprintSpec = {
      name: "own",
      expectsChanges: false,
      sandbox: {
        home: { ".pi/agent/models.json": "mine" },
        env: { ANTHROPIC_BASE_URL: "https://gateway.example.org" },
      },
      nodes: [{ kind: "agent", id: "ask", agent: "pi", prompt: "fake: sh cp ~/.pi/agent/models.json seen" }],
    };
    const secretSource = { ANTHROPIC_API_KEY: "sk-ant-0123456789" };
    const report = await bench.run({ runId: "own", blueprint, secretSource, sandbox: { mounts, env: env ?? {} } });
    expect(report.status).toBe("success");
    expect(bench.file("own", "changes.patch")).toContain("+mine");
  });

  test.each([
    ["one that is not there", () => join(bench.scratch.path, "nowhere"), "not_found", "there is no such file"],
    ["a directory", () => bench.scratch.path, "invalid_argument", "is not a regular file"],
    [
      "one that is too large",
      () => {
        const path = join(bench.scratch.path, "large");
        writeFileSync(path, Buffer.alloc((1 << 20) + 1));
        return path;
      },
      "invalid_argument",
      "larger than 1048576 bytes",
    ],
  ])("of this machine are refused before anything is made: %s", async (_, file, code, why) => {
    const blueprint = of("true", { ".x": { file: file() } });
    await expect(bench.run({ runId: "refused", blueprint })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(new RegExp(`sandbox\\.home\\["\\.x"\\]\\.file.*${why}`)) as string,
    });
    expect(bench.state("refused", "run.json")).toBe("");
  });

  test("of this machine are refused where a policy forbids mounts", async () => {
    const policy = join(bench.scratch.path, "policy.yaml");
    writeFileSync(policy, "mounts: none\n", { mode: 0o600 });
    process.env["GLOVEBOX_POLICY"] = policy;
    try {
      const run = (home: object): Promise<unknown> =>
        prepareRun({ blueprint: of("true", home as never), repo: bench.repo, intent: "x", sandboxType: "local" });
      await expect(run({ ".x": { file: login } })).rejects.toMatchObject({ code: "permission_denied" });
      await expect(run({ ".x": "text" })).resolves.toBeDefined();
    } finally {
      delete process.env["GLOVEBOX_POLICY"];
    }
  });

  test.each(["/etc/x", "../x", "a/../x", "a/./b", "~/x", "a//b", "a/", ".", ".."])(
    "have paths below HOME only: %s is refused",
    async (path) => {
      const text = JSON.stringify(of("true", { [path]: "x" }));
      const { faults } = await readBlueprint(text, "b.json");
      expect(faults.map((fault) => fault.message).join()).toContain("a path below HOME");
    },
  );

  test("of this machine need trust where the blueprint comes from a repository, texts don't", async () => {
    const folder = join(bench.repo, ".glovebox", "blueprints");
    mkdirSync(folder, { recursive: true });
    const put = (name: string, home: object): void =>
      writeFileSync(join(folder, `${name}.json`), JSON.stringify({ ...of("true", home as never), name }));
    put("texts", { ".x": "text" });
    put("files", { ".x": { file: login } });
    const load = (name: string): Promise<unknown> => loadBlueprint(name, { repoDir: bench.repo });
    await expect(load("texts")).resolves.toMatchObject({ name: "texts" });
    await expect(load("files")).rejects.toMatchObject({
      code: "permission_denied",
      message: expect.stringContaining(`the file ${login}`) as string,
    });
  });
});
