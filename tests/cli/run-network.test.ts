import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Bench, createBench } from "../support/cli.js";
import { createRepository, git } from "../support/scratch.js";

let bench: Bench;
let repo: string;

beforeAll(() => {
  bench = createBench();
  repo = createRepository(join(bench.path, "repo"));
  const packages = { "": { name: "p" }, "node_modules/x": { version: "1.0.0", resolved: "https://mirror.test/x.tgz" } };
  writeFileSync(join(repo, "package.json"), JSON.stringify({ name: "p" }));
  writeFileSync(join(repo, "package-lock.json"), JSON.stringify({ lockfileVersion: 3, packages }));
  writeFileSync(join(repo, ".gitignore"), "node_modules\n");
  mkdirSync(join(repo, "node_modules"));
  git(repo, "add", "-A");
  git(repo, "commit", "--quiet", "-m", "lock");
});
afterAll(() => bench.remove());

const plan = (...more: string[]) =>
  bench.run(["run", "test-and-report", "--repo", repo, "-m", "look", "--dry-run", ...more], {
    env: { NPM_CONFIG_REGISTRY: "https://mirror.test/" },
  });

describe("run --dry-run", () => {
  test("shows the install step and what it reaches, for people and for programs", async () => {
    const { code, stdout } = await plan();
    expect(code).toBe(0);
    expect(stdout).toContain("install: npm ci (package-lock.json); until it is done, it reaches mirror.test:443");
    expect(stdout).toContain("network: none");
    const json = JSON.parse((await plan("--json")).stdout) as { installs: object[] };
    expect(json.installs).toMatchObject([{ id: "install-npm", run: ["npm", "ci"], reach: ["mirror.test:443"] }]);
  });

  test("--no-install, --copy and --network change it", async () => {
    expect((await plan("--no-install")).stdout).not.toContain("install: npm");
    const copied = await plan("--copy", "node_modules");
    expect(copied.stdout).toContain("copy in node_modules");
    expect(copied.stdout).not.toContain("install: npm");
    const allowed = await plan("--network", "allow=mirror.test,api.test", "--json");
    expect(JSON.parse(allowed.stdout)).toMatchObject({
      sandbox: { network: { allow: ["api.test", "mirror.test"] } },
      installs: [{ reach: [] }],
    });
    expect((await plan("--network", "some")).code).toBe(2);
    expect((await plan("--network", "allow=localhost")).code).toBe(2);
  });

  test("a host that only the lockfile names is refused, with the flag to type", async () => {
    const { code, stderr } = await bench.run(["run", "test-and-report", "--repo", repo, "-m", "look", "--dry-run"]);
    expect(code).toBe(3);
    expect(stderr).toContain("--network allow=mirror.test");
  });
});

describe("exec", () => {
  const script = "echo 'getaddrinfo EAI_AGAIN evil.test' >&2; exit 3";

  test("says which flag opens the network when a name had no address", async () => {
    const closed = await bench.run(["exec", "--", "sh", "-c", script]);
    expect(closed).toMatchObject({ code: 3, stderr: expect.stringContaining("--network allow=<host>") });
    const json = JSON.parse((await bench.run(["exec", "--json", "--", "sh", "-c", script])).stdout) as { hint: string };
    expect(json.hint).toContain("--network allow=<host>");
    expect(json.hint).not.toContain("evil.test");
  });

  test("says nothing where the network is open, or nothing failed", async () => {
    const open = await bench.run(["exec", "--network", "full", "--", "sh", "-c", script]);
    expect(open.stderr).not.toContain("--network");
    const fine = await bench.run(["exec", "--", "sh", "-c", "echo EAI_AGAIN >&2"]);
    expect(fine).toMatchObject({ code: 0, stderr: "EAI_AGAIN\n" });
  });
});
