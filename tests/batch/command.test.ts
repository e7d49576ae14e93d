import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BatchResult, BatchStatus } from "../../src/batch.js";
import { type Bench, createBench } from "../support/cli.js";
import { BUSYBOX, useEngine, whyNoDocker } from "../support/docker/engine.js";
import { askEngine } from "../support/docker/task-place.js";
import { SET_UP_LIMIT } from "../support/run/set-up-limit.js";
import { createRepository } from "../support/scratch.js";

let bench: Bench;
beforeAll(() => {
  bench = createBench();
});
afterAll(() => bench.remove());

/** Writes a file of tasks and gives its path and the directory of its batch. */
function writeTasks(name: string, tasks: readonly object[]): { path: string; out: string } {
  const path = join(bench.path, `${name}.jsonl`);
  writeFileSync(path, tasks.map((task) => `${JSON.stringify(task)}\n`).join(""));
  return { path, out: join(bench.path, `${name}.batch`) };
}

function linesOf(text: string): BatchResult[] {
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as BatchResult);
}

function resultsIn(out: string): BatchResult[] {
  return linesOf(readFileSync(join(out, "results.jsonl"), "utf8"));
}

async function statusOf(out: string): Promise<BatchStatus> {
  return JSON.parse((await bench.run(["batch", "status", out, "--json"])).stdout) as BatchStatus;
}

describe("glovebox batch", () => {
  test("runs commands, shows, exports and repeats them", async () => {
    const { path, out } = writeTasks("first", [
      {
        id: "hello",
        run: "cat name; echo $WHO $GLOVEBOX_TASK_ID",
        files: { name: "from a file\n" },
        env: { WHO: "me" },
      },
      { id: "=three", run: ["sh", "-c", "exit 3"] },
      { id: "slow", run: "sleep 60", timeout: "300ms" },
      { id: "echo" },
      { id: "nowhere", cwd: "nowhere" },
    ]);
    const { stdout, stderr, code } = await bench.run([
      "batch",
      "run",
      path,
      "-b",
      "local",
      "--",
      "cat",
      "/proc/sys/kernel/ostype",
    ]);
    expect(stderr).toContain("5 tasks: 2 passed, 2 failed, 1 refused; ");
    expect(code).toBe(1);
    const byId = new Map(linesOf(stdout).map((line) => [line.taskId, line]));
    expect(byId.get("hello")).toMatchObject({ outcome: "passed", stdout: "from a file\nme hello\n", attempt: 1 });
    expect(byId.get("=three")).toMatchObject({ outcome: "failed", exitCode: 3 });
    expect(byId.get("slow")).toMatchObject({ outcome: "failed", timedOut: true });
    expect(byId.get("echo")).toMatchObject({ outcome: "passed", stdout: "Linux\n" });
    expect(byId.get("nowhere")).toMatchObject({ outcome: "refused", error: { code: "not_found" } });
    expect(resultsIn(out)).toEqual(linesOf(stdout));

    const status = await bench.run(["batch", "status", path]);
    expect(status.stdout).toMatch(/done\s+5 of 5\n/);
    expect(status.stdout).toMatch(/nowhere\s+refused\s+not_found/);
    const csv = await bench.run(["batch", "export", out, "--format", "csv"]);
    expect(csv.stdout).toContain("\n'=three,failed,1,3,false,");
    const table = await bench.run(["batch", "export", out, "--format", "table"]);
    expect(table.stdout).toMatch(/slow\s+failed\s+killed at its timeout after \d+\.\d s/);
    const page = readFileSync(join(out, "report.html"), "utf8");
    expect(page).toContain("default-src &#39;none&#39;");
    expect(page).toContain('<td class="mono">hello</td><td class="word good">passed</td>');
    expect((await bench.run(["batch", "export", out, "--format", "html"])).stdout).toBe(page);

    const again = await bench.run(["batch", "retry", path, "--only", "refused"]);
    expect(linesOf(again.stdout)).toMatchObject([{ taskId: "nowhere", attempt: 2 }]);
    const exported = linesOf((await bench.run(["batch", "export", out])).stdout);
    expect(exported).toHaveLength(5);
    expect(exported.find(({ taskId }) => taskId === "nowhere")).toMatchObject({ attempt: 2 });
    expect(await bench.settled()).toEqual([]);
  });

  test("goes on when it was killed, three times, and leaves nothing", async () => {
    const tasks = Array.from({ length: 60 }, (_, at) => ({ id: `t${at}`, run: "echo $GLOVEBOX_TASK_ID" }));
    const { path, out } = writeTasks("killed", tasks);
    const acknowledged: string[] = [];
    for (let kills = 0; kills < 3; kills++) {
      const running = bench.start(["batch", "run", path, "-b", "local", "-c", "4"]);
      await running.printed('"taskId"');
      running.child.kill("SIGKILL");
      const { signal, stdout } = await running.ended;
      expect(signal).toBe("SIGKILL");
      acknowledged.push(...linesOf(stdout.slice(0, stdout.lastIndexOf("\n") + 1)).map(({ taskId }) => taskId));
    }
    const { code, stdout } = await bench.run(["batch", "resume", path]);
    expect(code).toBe(0);
    acknowledged.push(...linesOf(stdout).map(({ taskId }) => taskId));
    expect(new Set(acknowledged).size).toBe(acknowledged.length);
    const ids = tasks.map(({ id }) => id).sort();
    expect(
      resultsIn(out)
        .map(({ taskId }) => taskId)
        .sort(),
    ).toEqual(ids);
    expect(resultsIn(out).every(({ taskId, stdout: said }) => said === `${taskId}\n`)).toBe(true);
    expect(await statusOf(out)).toMatchObject({ total: 60, passed: 60, started: 0 });
    expect(JSON.parse((await bench.run(["ls", "--json"])).stdout)).toEqual([]);
    expect(await bench.settled()).toEqual([]);
  });

  test("stops when it is interrupted, leaves nothing and says how to continue", async () => {
    const tasks = Array.from({ length: 40 }, (_, at) => ({ id: `t${at}`, run: at < 2 ? "true" : "sleep 60" }));
    const { path, out } = writeTasks("interrupted", tasks);
    const running = bench.start(["batch", "run", path, "-b", "local", "-c", "2"]);
    await running.printed('"taskId":"t1"');
    await expect.poll(async () => (await statusOf(out)).started).toBe(2);
    running.child.kill("SIGINT");
    const { code, stderr } = await running.ended;
    expect(stderr).toContain("40 tasks: 2 passed, 38 not done; ");
    expect(stderr).toContain(`to continue: glovebox batch resume ${out}\n`);
    expect(code).toBe(130);
    expect(await statusOf(out)).not.toHaveProperty("pid");
    expect(JSON.parse((await bench.run(["ls", "--json"])).stdout)).toEqual([]);
    expect(await bench.settled()).toEqual([]);
  });

  test("adopts what was made and not used when its driver was killed", async () => {
    const { path, out } = writeTasks(
      "adopted",
      ["a", "b", "c", "d"].map((id) => ({ id, run: "true" })),
    );
    const machines = join(bench.path, "machines");
    const log = join(bench.path, "requests");
    writeFileSync(log, "");
    const source = fileURLToPath(new URL("../fakes/simulated-service.ts", import.meta.url));
    const module = join(bench.path, "simulated.mjs");
    const contents = `
      import { appendFileSync } from "node:fs";
      import { SimulatedService } from ${JSON.stringify(source)};
      const service = new SimulatedService({
        name: "simulated", folder: ${JSON.stringify(machines)},
        onRequest: (name) => appendFileSync(${JSON.stringify(log)}, name + "\\n"),
      });
      export const backend = service.backend;
    `;
    buildSync({
      stdin: { contents, resolveDir: bench.path },
      bundle: true,
      format: "esm",
      platform: "node",
      outfile: module,
    });
    const requests = (name: string): number =>
      readFileSync(log, "utf8")
        .split("\n")
        .filter((line) => line === name).length;
    const argv = ["batch", "run", path, "-b", module, "-c", "1"];
    // The sandbox of the third task is made, and its driver dies before it writes that down.
    const { signal } = await bench.start(argv, { GLOVEBOX_FAILPOINTS: "create.ready=kill@3" }).ended;
    expect(signal).toBe("SIGKILL");
    expect(readdirSync(machines)).toHaveLength(1);
    expect(resultsIn(out)).toHaveLength(2);
    const status = await bench.run(["batch", "status", path]);
    expect(status.stdout).toContain(`none; to continue: glovebox batch resume ${out}\n`);
    const { code, stdout } = await bench.run(argv);
    expect(code).toBe(0);
    expect(linesOf(stdout)).toMatchObject([
      { taskId: "c", attempt: 1 },
      { taskId: "d", attempt: 1 },
    ]);
    expect([requests("create"), requests("reopen"), requests("exec")]).toEqual([4, 1, 4]);
    expect(readdirSync(machines)).toEqual([]);
    expect(JSON.parse((await bench.run(["ls", "--json"])).stdout)).toEqual([]);
  });

  test("stops when the disk is full, and goes on when it is not", async ({ skip }) => {
    if (process.getuid?.() !== 0) skip("only root can mount a small disk");
    const { path } = writeTasks(
      "full",
      Array.from({ length: 40 }, (_, at) => ({ id: `t${at}`, run: "head -c 20000 /dev/zero | tr '\\0' x" })),
    );
    const disk = join(bench.path, "disk");
    mkdirSync(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", disk]);
    try {
      const out = join(disk, "out");
      const argv = ["batch", "run", path, "-b", "local", "-c", "4", "--out", out];
      const full = await bench.run(argv);
      expect(full.code).toBe(1);
      expect(full.stderr).toContain("ENOSPC");
      const done = resultsIn(out).length;
      expect(done).toBeGreaterThan(0);
      expect(done).toBeLessThan(40);
      expect(await statusOf(out)).toMatchObject({ passed: done });
      execFileSync("mount", ["-o", "remount,size=8m", disk]);
      expect((await bench.run(argv)).code).toBe(0);
      expect(new Set(resultsIn(out).map(({ taskId }) => taskId)).size).toBe(40);
      expect(resultsIn(out)).toHaveLength(40);
    } finally {
      execFileSync("umount", [disk]);
    }
    expect(await bench.settled()).toEqual([]);
  });

  test("runs blueprints, and keeps their reports", async () => {
    const repo = createRepository(join(bench.path, "repo"));
    const blueprint = join(bench.path, "check.yaml");
    writeFileSync(
      blueprint,
      "version: 1\nname: check\nnodes:\n  - { id: look, kind: command, run: [test, -f, a.txt] }\n",
    );
    const { path, out } = writeTasks("blueprints", [
      { id: "one", blueprint, repo, intent: "look here" },
      { id: "none", blueprint: "nobody-has-this", repo, intent: "fail" },
    ]);
    const { stdout, stderr, code } = await bench.run(["batch", "run", path, "-b", "local"]);
    const byId = new Map(linesOf(stdout).map((line) => [line.taskId, line]));
    expect({ stderr, one: byId.get("one") }).toMatchObject({
      one: { outcome: "passed", run: { status: expect.stringMatching(/success|no_changes/) } },
    });
    expect(byId.get("none")).toMatchObject({
      outcome: "refused",
      error: { message: expect.stringContaining("nobody-has-this") },
    });
    expect(code).toBe(1);
    expect(existsSync(join(out, "runs", byId.get("one")?.resource ?? "", "report.html"))).toBe(true);
    expect(await bench.settled()).toEqual([]);
  });

  test.each([
    ["another action", ["walk", "x.jsonl"], 2, 'batch has no action "walk"'],
    ["a directory for a file of tasks", ["run", "."], 2, "to continue a batch: glovebox batch resume"],
    ["two files", ["run", "x.jsonl", "y.jsonl"], 2, "one file"],
    ["a shard that is none", ["run", "x.jsonl", "--shard", "5/4"], 2, "--shard takes i/n"],
    ["money that is none", ["run", "x.jsonl", "--max-cost", "lots"], 2, "--max-cost"],
    ["a retry of nothing", ["retry", "x.jsonl"], 2, "--only"],
    ["a batch that is not there", ["status", "x.jsonl"], 1, "There is no batch in"],
    ["a command for one that has its own", ["resume", "x.jsonl", "--", "true"], 2, "has the command that it was"],
    ["a format for what is not exported", ["run", "x.jsonl", "--format", "csv"], 2, "batch export takes it"],
    ["outcomes for what is not repeated", ["resume", "x.jsonl", "--only", "infra"], 2, "batch retry takes it"],
    ["another backend for one that has its own", ["resume", "x.jsonl", "-b", "docker"], 2, "takes no --backend"],
    ["a limit for what only reads", ["status", "x.jsonl", "--max-cost", "5"], 2, "batch status takes no --max-cost"],
    ["a directory for an export", ["export", "x.batch", "--out", "y"], 2, "batch export takes no --out"],
  ])("refuses %s", async (_, args, code, words) => {
    const ended = await bench.run(["batch", ...args]);
    expect(ended.stderr).toContain(words);
    expect(ended.code).toBe(code);
  });

  test("names the line of a task that is wrong, and makes nothing", async () => {
    const path = join(bench.path, "wrong.jsonl");
    const wrong: [string, string][] = [
      ['{"id":"a","run":"x"}\n{"id":"b","rnu":"x"}\n', 'line 2: Unknown option "rnu" in task'],
      ['{"id":"a","command":"x"}\n', "hint: it is run: a line of shell"],
      ['{"id":"a","run":"x"}\n\n{"id":"a","run":"y"}\n', 'line 3: the id "a" is also that of line 1'],
      ['{"id":"a","run":\n', "line 1: this is no JSON"],
      ['["a"]\n', "line 1: expected an object"],
      ['{"run":"x"}\n', "line 1: Invalid task.id"],
      ['{"id":"a","run":"x","timeout":"soon"}\n', "line 1: Invalid task.timeout: expected a time such as 90s"],
      ['{"taskId":"a"}\n', "line 1: task has no image"],
      // Some programs begin a text with a mark of its encoding; it is no part of the first task.
      ['\uFEFF{"id":"a","rnu":"x"}\n', 'line 1: Unknown option "rnu"'],
      ['{"id":"a"}\n', 'The task "a" has nothing to run'],
      ["\n", "has no task"],
    ];
    for (const [text, words] of wrong) {
      writeFileSync(path, text);
      const { code, stderr } = await bench.run(["batch", "run", path]);
      expect(stderr).toContain(words);
      expect(code).toBe(2);
    }
    expect(existsSync(join(bench.path, "wrong.batch"))).toBe(false);
  });

  test("is run again with the variables that it was not allowed to write down", async () => {
    const { path, out } = writeTasks("secret", [{ id: "a", run: "test $TOKEN = $(printf s3cr3t)-value" }]);
    const argv = ["batch", "run", path, "-b", "local", "--env", "TOKEN"];
    expect((await bench.run(argv, { env: { TOKEN: "s3cr3t-value" } })).code).toBe(0);
    for (const name of readdirSync(out)) expect(readFileSync(join(out, name), "utf8")).not.toContain("s3cr3t-value");
    const without = await bench.run(["batch", "resume", path]);
    expect(without.stderr).toContain("sandbox.env.TOKEN");
    expect(without.code).toBe(2);
    const again = ["batch", "retry", path, "--only", "passed", "--env", "TOKEN"];
    expect((await bench.run(again, { env: { TOKEN: "s3cr3t-value" } })).code).toBe(0);
  });
});

describe("glovebox batch on Docker", () => {
  const reason = whyNoDocker(BUSYBOX);
  let env: Record<string, string>;
  beforeAll(async () => {
    if (reason === undefined) env = { DOCKER_HOST: await useEngine(BUSYBOX) };
  }, SET_UP_LIMIT);

  test("runs commands and tasks with services from one file, and goes on after a kill", async ({ skip }) => {
    if (reason !== undefined) skip(reason);
    const service = {
      name: "web",
      spec: {
        imageSpec: { type: "pull", tag: BUSYBOX },
        hostname: "web",
        command: "echo hi > /index.html; httpd -f -p 80 -h /",
        waitFor: { port: 80 },
      },
    };
    const { path, out } = writeTasks("docker", [
      ...Array.from({ length: 12 }, (_, at) => ({ id: `t${at}`, image: BUSYBOX, run: "echo $GLOVEBOX_TASK_ID" })),
      { taskId: "served", image: BUSYBOX, serviceContainers: { web: service }, run: "wget -qO- http://web/" },
    ]);
    const argv = ["batch", "run", path, "-b", "docker", "-c", "3"];
    const running = bench.start(argv, env);
    await running.printed('"taskId"');
    running.child.kill("SIGKILL");
    await running.ended;
    const { code, stderr } = await bench.run(argv, { env });
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const results = resultsIn(out);
    expect(results.map(({ taskId }) => taskId).sort()).toEqual(
      ["served", ...Array.from({ length: 12 }, (_, at) => `t${at}`)].sort(),
    );
    expect(results.find(({ taskId }) => taskId === "served")).toMatchObject({ stdout: "hi\n" });
    const own = { all: true, filters: { label: [`glovebox.batch=${(await statusOf(out)).id}`] } };
    await expect.poll(() => askEngine<unknown[]>("GET", "/containers/json", own)).toEqual([]);
  });
});
