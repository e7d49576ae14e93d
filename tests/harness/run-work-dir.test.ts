import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RunReport, runHarness } from "../../src/harness.js";
import { type Bench, createBench } from "../support/cli.js";
import { createRepository, createScratch, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
let bench: Bench;
let repo: string;
beforeAll(() => {
  scratch = createScratch();
  bench = createBench(scratch);
  repo = createRepository(join(bench.path, "repo"));
});
afterAll(() => scratch.remove());

const SEE = { id: "see", kind: "command", shell: "pwd" };
const FAIL_ONCE = { id: "fail", kind: "command", shell: "test -e tried || { touch tried; exit 1; }" };

function blueprint(name: string, nodes: readonly object[], sandbox: object = {}): string {
  const path = join(bench.path, `${name}.json`);
  writeFileSync(path, JSON.stringify({ version: 1, name, nodes, sandbox }));
  return path;
}

const run = (path: string, ...more: string[]): string[] => [
  "run",
  path,
  "--repo",
  repo,
  "-m",
  "look",
  "--json",
  ...more,
];
const placeIn = ({ nodes }: RunReport): string | undefined => nodes.find(({ id }) => id === "see")?.output?.trim();
const seen = (stdout: string): string | undefined => placeIn(JSON.parse(stdout) as RunReport);

describe.concurrent("glovebox run", () => {
  test("works in /workspace, like exec", async () => {
    const { stdout, stderr } = await bench.run(run(blueprint("plain", [SEE])));
    expect(seen(stdout), stderr).toBe("/workspace");
  });

  test("works elsewhere with --work-dir, which can be no system folder", async () => {
    const path = blueprint("chosen", [SEE]);
    expect(seen((await bench.run(run(path, "--work-dir", "/srv/app"))).stdout)).toBe("/srv/app");
    const { code, stderr } = await bench.run(run(path, "--work-dir", "/etc/app"));
    expect([code, stderr]).toEqual([2, expect.stringContaining('Invalid workDir "/etc/app"') as string]);
  });

  test("continues there when it is resumed", async () => {
    const path = blueprint("again", [FAIL_ONCE, SEE]);
    expect((await bench.run(run(path, "--run-id", "again"))).code).toBe(1);
    const { code, stdout } = await bench.run(["resume", "again", "--json"]);
    expect([code, seen(stdout)]).toEqual([0, "/workspace"]);
  });

  test("shows the place in a dry run, and leaves it to the backend if the blueprint mounts something there", async () => {
    const data = join(bench.path, "data");
    mkdirSync(data);
    const plain = await bench.run(run(blueprint("dry", [SEE]), "--dry-run"));
    expect(JSON.parse(plain.stdout)).toMatchObject({ sandbox: { workDir: "/workspace" } });
    const mounts = [{ source: data, target: "/workspace/data" }];
    const path = blueprint("mounts", [SEE], { mounts });
    const mounted = await bench.run(run(path, "--trust"));
    expect(mounted.code, mounted.stderr).toBe(0);
    expect(seen(mounted.stdout)).not.toBe("/workspace");
  });
});

test("a run of the library works where the backend says, unless it asks", async () => {
  const options = { blueprint: blueprint("library", [SEE]), repo, intent: "look" };
  const [plain, asking] = [await runHarness(options), await runHarness({ ...options, preferredWorkDir: "/srv/work" })];
  expect(placeIn(plain)).not.toBe("/workspace");
  expect([plain.status, placeIn(asking)]).toEqual(["success", "/srv/work"]);
});
