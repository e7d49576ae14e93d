import { existsSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Bench, createBench } from "../support/cli.js";

let bench: Bench;
beforeEach(() => {
  bench = createBench();
});
afterEach(() => bench.remove());

interface Listed {
  id: string;
  name?: string;
  labels?: Record<string, string>;
  state: string;
  alive: boolean;
  workDir: string;
  hostDir: string;
}

async function list(): Promise<Listed[]> {
  return JSON.parse((await bench.run(["ls", "--json"])).stdout) as Listed[];
}

async function keep(): Promise<string> {
  const { code, stdout } = await bench.run(["exec", "--json", "--keep", "--", "sh", "-c", "echo kept > file"]);
  expect(code).toBe(0);
  return (JSON.parse(stdout) as { sandbox: { id: string } }).sandbox.id;
}

describe("kept sandboxes", () => {
  it("are told of, listed, opened again and removed", async () => {
    const kept = await bench.run(["exec", "--keep", "--", "sh", "-c", "echo kept > file"]);
    const id = /^glovebox: kept ([0-9a-f]+); /.exec(kept.stderr)?.[1] ?? "";
    expect(id).not.toBe("");
    expect(await list()).toMatchObject([{ id, state: "kept", alive: false }]);
    expect((await bench.run(["ls", "-q"])).stdout).toBe(`${id}\n`);
    expect((await bench.run(["ls"])).stdout).toMatch(new RegExp(`^ID +STATE +BACKEND.*\\n${id} +kept +local `));

    expect(await bench.run(["exec", "--id", id, "--", "cat", "file"])).toMatchObject({ code: 0, stdout: "kept\n" });
    expect(await list()).toMatchObject([{ id, state: "kept" }]);

    const [{ workDir, hostDir } = { workDir: "", hostDir: "" }] = await list();
    expect(workDir).toBe("/workspace");
    expect((await bench.run(["ls"])).stdout).toContain(` ${hostDir}\n`);
    expect(existsSync(hostDir)).toBe(true);
    expect(await bench.run(["rm", id])).toMatchObject({ code: 0, stdout: `${id}\n` });
    expect(existsSync(hostDir)).toBe(false);
    expect(await list()).toEqual([]);
    expect((await bench.run(["ls"])).stderr).toBe("glovebox: there are no sandboxes\n");
  });

  it("have names and labels, which every verb takes and the list shows", async () => {
    const make = ["exec", "--name", "dev", "--label", "team=blue", "--label", "stage=a=b", "--keep=all", "--"];
    const first = await bench.run([...make, "sh", "-c", 'echo warm > "$HOME/f"; echo kept > file']);
    expect(first).toMatchObject({
      code: 0,
      stderr: "glovebox: kept dev; glovebox exec --id dev -- … opens it again\n",
    });
    const [{ id } = { id: "" }] = await list();
    expect(await list()).toMatchObject([{ name: "dev", labels: { team: "blue", stage: "a=b" }, state: "kept" }]);
    expect((await bench.run(["ls"])).stdout).toMatch(
      new RegExp(`^ID +NAME +STATE .* LABELS\\n${id} +dev +kept +local .* team=blue,stage=a=b\\n$`),
    );
    for (const [filter, shown] of [
      [["--label", "team=blue"], `${id}\n`],
      [["--label", "team=blue", "--label", "stage=x"], ""],
      [["--name", "dev"], `${id}\n`],
      [["--name", "other"], ""],
      [["--names"], `${id}\ndev\n`],
    ] as const) {
      expect((await bench.run(["ls", "-q", ...filter])).stdout, filter.join(" ")).toBe(shown);
    }
    const taken = await bench.run([...make, "true"]);
    expect(taken).toMatchObject({ code: 1, stderr: expect.stringContaining('The name "dev" is in use') as string });
    expect(taken.stderr).toContain("open that sandbox with --id dev or --reopen, choose");
    expect((await bench.run(["ls", "--name", "other"])).stderr).toBe(
      "glovebox: there is no such sandbox; glovebox ls lists them all\n",
    );
    const again = await bench.run([
      "exec",
      "--name",
      "dev",
      "--reopen",
      "--json",
      "--",
      "sh",
      "-c",
      'cat "$HOME/f" file',
    ]);
    expect(JSON.parse(again.stdout)).toMatchObject({ stdout: "warm\nkept\n", sandbox: { id, name: "dev" } });
    const lacking = await bench.run(["exec", "--id", "dev", "--env", "STAGE=x", "--", "true"]);
    expect(lacking.stderr).not.toContain("warning");
    expect((await bench.run(["exec", "--id", "dev", "--", "true"])).stderr).toBe(
      "glovebox: warning: the sandbox was opened with STAGE before, and this call does not set it: give --env again\n",
    );
    expect((await bench.run(["exec", "--id", "dve", "--", "true"])).stderr).toContain("did you mean dev?");
    expect(await bench.run(["export", "dev", "file", `${bench.path}/out`])).toMatchObject({ code: 0 });
    expect((await bench.run(["fork", "dev"])).code).toBe(0);
    expect(await bench.run(["rm", "dev"])).toMatchObject({ code: 0, stdout: "dev\n" });
    expect((await bench.run(["rm", "dev"])).code).toBe(1);
    expect((await list()).map(({ labels }) => labels)).toEqual([{ team: "blue", stage: "a=b" }]);
  });

  it("that work elsewhere than in /workspace are reopened by name, and saved and started there", async () => {
    const named = ["exec", "--name", "elsewhere"];
    expect((await bench.run([...named, "--keep", "--work-dir", "/srv/app", "--", "true"])).code).toBe(0);
    expect(await bench.run([...named, "--reopen", "--", "pwd"])).toMatchObject({ code: 0, stdout: "/srv/app\n" });
    expect(await bench.run([...named, "--reopen", "--work-dir", "/other", "--", "pwd"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("made with another --work-dir") as string,
    });
    expect((await bench.run(["snapshot", "elsewhere", "--name", "saved-there"])).code).toBe(0);
    const started = await bench.run(["exec", "--snapshot", "saved-there", "--", "pwd"]);
    expect(started).toMatchObject({ code: 0, stdout: "/srv/app\n" });
    await bench.run(["snapshots", "--delete", "saved-there"]);
    expect((await bench.run(["rm", "elsewhere"])).code).toBe(0);
  });

  it("in use are not removed, and the hint says what to do", async () => {
    const id = await keep();
    const run = bench.start(["exec", "--id", id, "--", "sh", "-c", "echo ready; read line"]);
    await run.printed("ready\n");
    const { code, stderr } = await bench.run(["rm", id]);
    expect(code).toBe(1);
    expect(stderr).toBe(
      `glovebox: Sandbox "${id}" is open in process ${run.child.pid}\nhint: end that process first, then try again\n`,
    );
    const again = await bench.run(["exec", "--id", id, "--", "true"]);
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining("is open in process") as string });
    expect((await bench.run(["ls"])).stdout).toContain("in use");
    run.child.stdin?.end("\n");
    expect((await run.ended).code).toBe(0);
    expect((await bench.run(["rm", "--json", id])).stdout).toBe(`{"removed":["${id}"]}\n`);
  });

  it("that are misspelt bring the nearest one to mind", async () => {
    const id = await keep();
    const wrong = `${id.slice(0, -1)}x`;
    const { code, stderr } = await bench.run(["rm", wrong]);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `glovebox: No sandbox with the id or name "${wrong}"\nhint: did you mean ${id}?\n`,
    });
    expect((await bench.run(["exec", "--id", wrong, "--", "true"])).stderr).toBe(
      `glovebox: No kept sandbox with the id or name "${wrong}"\nhint: did you mean ${id}?\n`,
    );
    expect((await bench.run(["diff", id])).stderr).toMatch(/was not opened with a repository\nhint: .*--repo.*\n$/);
    expect(await list()).toHaveLength(1);
    const some = await bench.run(["rm", "--json", id, wrong]);
    expect(some.code).toBe(1);
    expect(JSON.parse(some.stdout)).toMatchObject({ error: { code: "not_found" }, partial: { removed: [id] } });
    expect(await list()).toEqual([]);
  });

  it("survive reap; what a killed process left does not", async () => {
    const id = await keep();
    const run = bench.start(["exec", "--", "sh", "-c", "echo ready; sleep 600"]);
    await run.printed("ready\n");
    const inUse = JSON.parse((await bench.run(["reap", "--json"])).stdout) as { removed: string[]; kept: string[] };
    expect(inUse).toMatchObject({ removed: [], kept: expect.arrayContaining([id]) as string[] });
    run.child.kill("SIGKILL");
    await run.ended;
    const left = (await list()).find((sandbox) => sandbox.id !== id)?.id;
    expect((await bench.run(["ls"])).stdout).toContain("left over");

    const dry = await bench.run(["reap", "--dry-run"]);
    expect(dry).toMatchObject({ code: 0, stdout: `would remove ${left}\n1 to remove, 1 kept or in use, 0 failed\n` });
    expect(await list()).toHaveLength(2);
    const { code, stdout } = await bench.run(["reap"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: `removed ${left}\n1 removed, 1 kept or in use, 0 failed\n` });
    expect(await list()).toMatchObject([{ id, state: "kept" }]);
  });
});
