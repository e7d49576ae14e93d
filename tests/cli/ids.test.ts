import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Bench, createBench } from "../support/cli.js";
import { createRepository } from "../support/scratch.js";

let bench: Bench;
beforeEach(() => {
  bench = createBench();
});
afterEach(() => bench.remove());

async function keep(...args: string[]): Promise<string> {
  const { code, stdout } = await bench.run(["exec", "--json", "--keep", ...args, "--", "sh", "-c", "echo kept > file"]);
  expect(code).toBe(0);
  return (JSON.parse(stdout) as { sandbox: { id: string } }).sandbox.id;
}

/** Kept sandboxes until two ids start with the same character; sixteen do at the latest with the next one. */
async function keepAlike(): Promise<{ alike: string[]; first: string }> {
  const ids: string[] = [];
  for (;;) {
    const id = await keep();
    const alike = ids.filter((other) => other[0] === id[0]);
    ids.push(id);
    if (alike.length > 0) return { alike: [...alike, id], first: id[0] ?? "" };
  }
}

async function idsLeft(): Promise<string[]> {
  return (await bench.run(["ls", "-q"])).stdout.split("\n").filter((id) => id !== "");
}

describe("an id may be cut short", () => {
  test("of a sandbox and of a snapshot, in every verb; the answer has the full one", async () => {
    const repo = createRepository(join(bench.path, "repo"));
    const id = await keep("--repo", repo);
    const start = id.slice(0, 5);
    expect(await bench.run(["exec", "--id", start, "--", "cat", "file"])).toMatchObject({ code: 0, stdout: "kept\n" });
    const { stdout } = await bench.run(["snapshot", start, "--json"]);
    const { snapshot, sandbox } = JSON.parse(stdout) as { snapshot: string; sandbox: string };
    expect(sandbox).toBe(id);
    const short = snapshot.slice(0, -3);
    expect(await bench.run(["restore", start, short])).toMatchObject({ code: 0, stdout: `${id}\n` });
    expect(await bench.run(["exec", "--snapshot", short, "--", "cat", "file"])).toMatchObject({ stdout: "kept\n" });
    expect((await bench.run(["diff", start, "--name-status"])).stdout).toBe("A\tfile\n");
    expect(await bench.run(["export", start, "file", "./out", "--json"])).toMatchObject({ code: 0 });
    expect(await bench.run(["import", start, "./out", "in"])).toMatchObject({ code: 0 });
    const forked = await bench.run(["fork", start]);
    expect(forked.code).toBe(0);
    expect(await bench.run(["snapshots", "--delete", short])).toMatchObject({ code: 0, stdout: `${snapshot}\n` });
    expect(await bench.run(["rm", start])).toMatchObject({ code: 0, stdout: `${id}\n` });
    expect(await idsLeft()).toEqual([forked.stdout.trim()]);
  });

  test("but only where one id starts so: else the candidates are listed, and nothing happens", async () => {
    const { alike, first } = await keepAlike();
    const before = await idsLeft();
    const { code, stderr } = await bench.run(["rm", first]);
    expect(code).toBe(2);
    expect(stderr).toContain(`glovebox: "${first}" is the start of the ids of ${alike.length} sandboxes\n`);
    for (const id of alike) expect(stderr).toContain(id);
    expect(await idsLeft()).toEqual(before);
  });

  test("and a name counts before the start of an id", async () => {
    const id = await keep();
    await keep("--name", id.slice(0, 3));
    expect(await bench.run(["rm", id.slice(0, 3)])).toMatchObject({ code: 0 });
    expect(await idsLeft()).toEqual([id]);
  });
});

describe("rm --all", () => {
  test("asks on a terminal, and needs --yes without one", async () => {
    const ids = [await keep(), await keep()].sort();
    const alone = await bench.run(["rm", "--all"]);
    expect(alone.code).toBe(2);
    expect(alone.stderr).toMatch(/would remove 2 kept sandboxes[\s\S]*add --yes/);
    expect(await bench.run(["rm"])).toMatchObject({ code: 2, stderr: expect.stringContaining("or --all") });
    expect(await bench.run(["rm", "--all", "x"])).toMatchObject({ code: 2 });
    expect((await idsLeft()).sort()).toEqual(ids);
    const { stdout } = await bench.run(["rm", "--all", "--yes", "--json"]);
    expect((JSON.parse(stdout) as { removed: string[] }).removed.sort()).toEqual(ids);
    expect(await idsLeft()).toEqual([]);
    expect(await bench.run(["rm", "--all"])).toMatchObject({ code: 0, stderr: expect.stringContaining("no kept") });
  });
});

describe("runs", () => {
  test("are found by the start of their id, listed with their repository, and resume takes the only one", async () => {
    const repo = createRepository(join(bench.path, "work"));
    const blueprint = join(bench.path, "b.json");
    const gate = { id: "green", kind: "gate", checks: [{ id: "there", shell: "test -e /workspace-never" }] };
    writeFileSync(blueprint, JSON.stringify({ version: 1, name: "b", nodes: [gate] }));
    const start = (runId: string): string[] => ["run", blueprint, "--repo", repo, "-m", "try it", "--run-id", runId];
    expect(await bench.run(["resume"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no run to continue"),
    });
    expect((await bench.run(start("alpha-1"))).code).toBe(1);
    expect((await bench.run(["runs"])).stdout).toMatch(/REPOSITORY.*\n.*alpha-1.* ~\/work .*try it/);
    expect((await bench.run(["show", "alph"])).stdout).toContain("run alpha-1 · failed");
    const again = await bench.run(["resume"]);
    expect(again.code).toBe(1);
    expect(again.stderr).toMatch(/^glovebox: continuing run alpha-1 \(failed\): try it\n/);
    expect((await bench.run(start("alpha-2"))).code).toBe(1);
    const both = await bench.run(["resume"]);
    expect(both.code).toBe(2);
    expect(both.stderr).toMatch(
      /2 runs could be continued\nhint: name one: alpha-[12] \(failed\), alpha-[12] \(failed\)/,
    );
    const unclear = await bench.run(["show", "alpha"]);
    expect(unclear).toMatchObject({ code: 2, stdout: "" });
    expect(unclear.stderr).toMatch(/"alpha" is the start of the ids of 2 runs/);
    expect(await bench.run(["gc", "alpha-1"])).toMatchObject({ code: 0, stdout: "removed alpha-1\n" });
    expect(await bench.run(["gc", "al"])).toMatchObject({ code: 0, stdout: "removed alpha-2\n" });
  });
});
