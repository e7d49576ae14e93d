import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BatchResult } from "../../src/batch.js";
import { type Bench, createBench, program } from "../support/cli.js";
import { BUSYBOX, useEngine, whyNoDocker } from "../support/docker/engine.js";
import { askEngine } from "../support/docker/task-place.js";
import { SET_UP_LIMIT } from "../support/run/set-up-limit.js";
import { openTerminals } from "../support/terminal.js";

const agent = `{ name: agent, spec: { imageSpec: { type: pull, tag: "${BUSYBOX}" } } }`;
const reason = whyNoDocker(BUSYBOX);

describe("glovebox task run", () => {
  let bench: Bench;
  let env: Record<string, string>;
  const write = (name: string, text: string): string => {
    const path = join(bench.path, name);
    writeFileSync(path, text);
    return path;
  };
  const linesOf = (text: string): BatchResult[] =>
    text
      .trim()
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as BatchResult);
  beforeAll(async () => {
    bench = createBench();
    if (reason === undefined) env = { DOCKER_HOST: await useEngine(BUSYBOX) };
  }, SET_UP_LIMIT);
  afterAll(() => bench.remove());

  test("runs every task, writes results as lines, and goes on where it stopped", async ({ skip }) => {
    if (reason !== undefined) skip(reason);
    const text = (last: string): string =>
      [
        "tasks:",
        `  - { taskId: one, agentContainer: ${agent} }`,
        `  - { taskId: two, agentContainer: ${agent}, run: [sh, -c, "echo out; echo err >&2; exit 3"] }`,
        `  - { taskId: three, agentContainer: ${agent}, run: "${last}", timeout: 20000 }`,
      ].join("\n");
    const path = write("first.yaml", text("sleep 60"));
    const results = join(bench.path, "first.batch", "results.jsonl");
    const argv = ["task", "run", path, "-bdocker", "-c3", "--", "sh", "-c", "echo $GLOVEBOX_TASK_ID"];
    const running = bench.start(argv, env);
    await running.printed('"taskId":"one"');
    await running.printed('"taskId":"two"');
    running.child.kill("SIGINT");
    const stopped = await running.ended;
    expect(stopped.code).toBe(130);
    expect(stopped.stderr).toContain("3 tasks: 1 passed, 1 failed, 1 not done");
    const first = linesOf(readFileSync(results, "utf8"));
    expect(first.map(({ taskId, exitCode, stdout, stderr }) => ({ taskId, exitCode, stdout, stderr }))).toEqual(
      expect.arrayContaining([
        { taskId: "one", exitCode: 0, stdout: "one\n", stderr: "" },
        { taskId: "two", exitCode: 3, stdout: "out\n", stderr: "err\n" },
      ]),
    );
    expect(first).toHaveLength(2);
    expect(linesOf(stopped.stdout)).toEqual(first);

    write("first.yaml", text("echo quick"));
    const second = await bench.run(argv, { env });
    expect(linesOf(second.stdout)).toMatchObject([{ taskId: "three", exitCode: 0, stdout: "quick\n" }]);
    expect(second.stderr).toContain("3 tasks: 2 passed, 1 failed; ");
    expect(second.code).toBe(1);
    expect(linesOf(readFileSync(results, "utf8"))).toHaveLength(3);

    const nothing = await bench.run(argv, { env });
    expect({ stdout: nothing.stdout, code: nothing.code }).toEqual({ stdout: "", code: 1 });
    const again = await bench.run([...argv.slice(0, 5), "--again", ...argv.slice(5)], { env });
    expect(linesOf(again.stdout)).toHaveLength(3);
    const left = await askEngine<unknown[]>("GET", "/containers/json", {
      all: true,
      filters: { label: ["glovebox.batch"], name: ["-(one|two|three)-[0-9a-f]{8}$"] },
    });
    expect(left).toEqual([]);
  });

  test("shows a live table on a terminal, and no JSON", async ({ skip }) => {
    if (reason !== undefined) skip(reason);
    const path = write("table.yaml", `tasks:\n  - { taskId: on-screen, agentContainer: ${agent} }\n`);
    await using terminals = await openTerminals();
    const argv = [process.execPath, program, "task", "run", path, "--", "sleep", "1"];
    const running = await terminals.run(argv, { ...bench.env, ...env, TERM: "xterm" });
    await running.shows("running");
    const { exitCode, output } = await running.ended;
    expect(exitCode).toBe(0);
    expect(output).toMatch(/on-screen\s+\S*passed\S*\s+exit code 0 after/);
    expect(output).toContain("1 task: 1 passed");
    expect(output).not.toContain('{"taskId"');
    const asked = [process.execPath, program, "task", "run", path, "--again", "--json", "--", "false"];
    const again = await (await terminals.run(asked, { ...bench.env, ...env, TERM: "xterm" })).ended;
    expect(again.output).toMatch(/on-screen\s+\S*failed\S*\s+exit code 1 after/);
    expect(again.output).toContain(`results: ${path.replace(/yaml$/, "batch/results.jsonl")}`);
    expect(again.output).toContain('{"taskId":"on-screen"');
  });

  test("a task that cannot be set up does not keep the others from running", async ({ skip }) => {
    if (reason !== undefined) skip(reason);
    const bad = `{ name: agent, spec: { user: nobody-knows, imageSpec: { type: pull, tag: "${BUSYBOX}" } } }`;
    const path = write(
      "second.yaml",
      `tasks:\n  - { taskId: bad, agentContainer: ${bad} }\n  - { taskId: good, agentContainer: ${agent} }\n`,
    );
    const { stdout, stderr, code } = await bench.run(["task", "run", path, "--", "true"], { env });
    const lines = linesOf(stdout).sort((a, b) => (a.taskId < b.taskId ? -1 : 1));
    expect(lines).toMatchObject([
      { taskId: "bad", error: { code: "invalid_argument", message: expect.stringContaining("nobody-knows") } },
      { taskId: "good", exitCode: 0 },
    ]);
    expect(stderr).toContain("2 tasks: 1 passed, 1 refused");
    expect(code).toBe(1);
    const retried = await bench.run(["task", "run", path, "--", "true"], { env });
    expect(linesOf(retried.stdout).map(({ taskId }) => taskId)).toEqual(["bad"]);
  });

  test.each([
    ["a file that is not there", ["task", "run", "nowhere.yaml", "--", "true"], 1, "nowhere.yaml"],
    ["another action", ["task", "walk", "x.yaml", "--", "true"], 2, 'task has no action "walk"'],
    ["no file", ["task", "run", "--", "true"], 2, "task needs run <file>"],
    ["a command without --", ["task", "run", "x.yaml", "true"], 2, 'task needs "--" before the command'],
    ["a backend without containers", ["task", "run", "x.yaml", "-b", "local", "--", "true"], 2, "use --backend docker"],
    ["no number", ["task", "run", "x.yaml", "--concurrency", "0", "--", "true"], 2, "--concurrency"],
  ])("refuses %s", async (_, args, code, words) => {
    const ended = await bench.run(args);
    expect(ended.stderr).toContain(words);
    expect(ended.code).toBe(code);
  });

  test("refuses a task that has nothing to run, and results that are none, before anything happens", async () => {
    const path = write("third.yaml", `tasks:\n  - { taskId: idle, agentContainer: ${agent} }\n`);
    const idle = await bench.run(["task", "run", path]);
    expect({ code: idle.code, stderr: idle.stderr }).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"idle" has nothing to run'),
    });
    const other = write("notes.txt", "milk\neggs\n");
    const wrong = await bench.run(["task", "run", path, "--out", other, "--", "true"]);
    expect(wrong.stderr).toContain(other);
    expect(wrong.code).toBe(2);
    expect(readFileSync(other, "utf8")).toBe("milk\neggs\n");
    expect(existsSync(join(bench.path, "third.batch"))).toBe(false);
  });

  test("says which line starts an engine that does not run", async () => {
    const path = write("fourth.yaml", `tasks:\n  - { taskId: one, agentContainer: ${agent} }\n`);
    const none = `unix://${join(bench.path, "none.sock")}`;
    const { code, stderr } = await bench.run(["task", "run", path, "--", "true"], { env: { DOCKER_HOST: none } });
    expect(code).toBe(1);
    expect(stderr).toContain(`No Docker engine answers at ${none}`);
    expect(stderr).toContain("systemctl start docker");
  });
});
