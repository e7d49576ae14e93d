import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Bench, createBench } from "../support/cli.js";
import { createRepository } from "../support/scratch.js";

let bench: Bench;
beforeAll(() => {
  bench = createBench();
});
afterAll(() => bench.remove());
afterEach(() => rmSync(folder(), { recursive: true, force: true }));

const folder = (): string => join(bench.path, ".config", "glovebox");
const file = (): string => join(folder(), "config.yaml");

interface Shown {
  exists: boolean;
  policies: { path: string }[];
  values: { name: string; value: unknown; from: string }[];
  refused?: string;
}

function configure(text: string): void {
  mkdirSync(folder(), { recursive: true, mode: 0o700 });
  writeFileSync(file(), text, { mode: 0o600 });
}

/** Writes a policy and returns the variable that names it. */
function decree(text: string): { GLOVEBOX_POLICY: string } {
  const path = join(bench.path, "policy.yaml");
  writeFileSync(path, text, { mode: 0o600 });
  return { GLOVEBOX_POLICY: path };
}

async function show(args: readonly string[] = [], env: Record<string, string> = {}): Promise<Map<string, unknown>> {
  const { stdout } = await bench.run(["config", "--json", ...args], { env });
  const { values } = JSON.parse(stdout) as Shown;
  return new Map(values.map(({ name, value, from }) => [name, [value, from]]));
}

describe("glovebox config", () => {
  it("prints the place of the file, which need not exist", async () => {
    const { stdout, code } = await bench.run(["config", "path"]);
    expect([stdout, code]).toEqual([`${file()}\n`, 0]);
    const other = await bench.run(["config", "path", "--json"], { env: { GLOVEBOX_CONFIG: "/a/b.yaml" } });
    expect(JSON.parse(other.stdout)).toEqual({ path: "/a/b.yaml" });
  });

  it("shows each value and where it comes from", async () => {
    expect((await show()).get("backend")).toEqual(["local", "built-in"]);
    configure("backend: docker\nlimits: { memory: 512m }\n");
    const env = decree("limits: { pids: 50 }\n");
    const values = await show([], env);
    expect(values.get("backend")).toEqual(["docker", file()]);
    expect(values.get("limits.memory")).toEqual([512 << 20, file()]);
    expect(values.get("limits.pids")).toEqual([50, env.GLOVEBOX_POLICY]);
    expect(values.get("image")).toEqual([expect.stringMatching(/^node:/), "built-in"]);
    expect((await show([], { GLOVEBOX_BACKEND: "local" })).get("backend")).toEqual(["local", "GLOVEBOX_BACKEND"]);
    expect((await show(["--backend", "dagger"])).get("backend")).toEqual(["dagger", "--backend"]);
    const { stdout } = await bench.run(["config"], { env });
    expect(stdout).toContain(`configuration: ${file()}\npolicy: ${env.GLOVEBOX_POLICY}\n`);
  });

  it("exits with 1 and names the rule if the policy forbids the file's values", async () => {
    configure("network: full\n");
    const { stdout, code } = await bench.run(["config"], { env: decree("network: none\n") });
    expect(code).toBe(1);
    expect(stdout).toMatch(/policy\.yaml forbids it \(rule network\)/);
  });
});

describe("the files", () => {
  it("apply to exec; a flag wins", async () => {
    configure("limits: { pids: 77 }\nworkDir: /from/the/file\n");
    const inside = await bench.run(["exec", "--", "pwd"]);
    expect([inside.stdout, inside.stderr]).toEqual(["/from/the/file\n", ""]);
    expect((await bench.run(["exec", "--work-dir", "/flag", "--", "pwd"])).stdout).toBe("/flag\n");
  });

  it("apply to run, below what the blueprint and the flags say", async () => {
    configure("limits: { pids: 300, cpus: 1 }\nworkDir: /from/the/file\nttl: 1h\n");
    const repo = createRepository(join(bench.path, "repo"));
    const nodes = [{ id: "see", kind: "command", shell: "pwd" }];
    const blueprint = join(bench.path, "blueprint.json");
    writeFileSync(blueprint, JSON.stringify({ version: 1, name: "see", nodes, sandbox: { limits: { pids: 200 } } }));
    const args = ["run", blueprint, "--repo", repo, "-m", "look", "--dry-run", "--json"];
    const plain = await bench.run(args);
    expect(JSON.parse(plain.stdout), plain.stderr).toMatchObject({
      sandbox: { workDir: "/from/the/file", limits: { pids: 200, cpus: 1 }, ttl: 3_600_000 },
    });
    const flagged = await bench.run([...args, "--work-dir", "/flag"]);
    expect(JSON.parse(flagged.stdout)).toMatchObject({ sandbox: { workDir: "/flag" } });
  });

  it("stop exec if they can't be used", async () => {
    configure("bakend: docker\n");
    const wrong = await bench.run(["exec", "--", "true"]);
    expect([wrong.code, wrong.stderr]).toEqual([
      expect.any(Number),
      expect.stringContaining('did you mean "backend"?'),
    ]);
    expect(wrong.code).not.toBe(0);
    configure("");
    const refused = await bench.run(["exec", "--network", "full", "--", "true"], { env: decree("network: none\n") });
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("forbids it (rule network)")]);
  });

  it("are shown by doctor, which fails for a policy that can't be used", async () => {
    configure("ttl: 1h\n");
    const env = decree("network: none\n");
    const good = await bench.run(["doctor", "local"], { env });
    expect(good.stdout).toContain(file());
    expect(good.stdout).toContain(env.GLOVEBOX_POLICY);
    const bad = await bench.run(["doctor"], { env: decree("network: nothing\n") });
    expect(bad.code).toBe(1);
    expect(bad.stdout).toContain("can't be used, so nothing is allowed");
  });
});
