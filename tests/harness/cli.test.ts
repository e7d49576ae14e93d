import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunEvent, RunReport } from "../../src/harness.js";
import { type FakeGitHub, serveGitHub } from "../fakes/github.js";
import { type Bench, createBench, program } from "../support/cli.js";
import { changePlan } from "../support/harness/change-plan.js";
import { createRepository, git } from "../support/scratch.js";
import { openTerminals } from "../support/terminal.js";

let bench: Bench;
let repo: string;
let github: FakeGitHub;
beforeAll(async () => {
  bench = createBench();
  repo = createRepository(join(bench.path, "repo"));
  mkdirSync(join(bench.path, "remotes"));
  github = await serveGitHub(join(bench.path, "remotes"));
  git(repo, "push", "--quiet", github.remote, "main:trunk");
  git(repo, "remote", "add", "origin", github.url);
});
afterAll(async () => {
  await github[Symbol.asyncDispose]();
  bench.remove();
});

function blueprint(name: string, nodes: Record<string, unknown>[], more: Record<string, unknown> = {}): string {
  const path = join(bench.path, `${name}.json`);
  writeFileSync(path, JSON.stringify({ version: 1, name, nodes, ...more }));
  return path;
}

const run = (path: string, ...more: string[]): string[] => ["run", path, "--repo", repo, "-m", "mend it", ...more];
const command = (id: string, shell: string): Record<string, unknown> => ({ id, kind: "command", shell });
const directory = (runId: string): string => join(repo, ".glovebox", "runs", runId);

async function until<T>(look: () => T | undefined | false): Promise<T> {
  for (let tries = 0; tries < 1200; tries++) {
    const found = look();
    if (found) return found;
    await delay(50);
  }
  throw new Error("it did not happen within 60 s");
}

function report(runId: string): RunReport {
  return JSON.parse(readFileSync(join(directory(runId), "report.json"), "utf8")) as RunReport;
}

describe.concurrent("glovebox run", () => {
  test("says on stderr what happens, and leaves stdout empty", async () => {
    const path = blueprint("plain", [command("edit", "echo x > x.txt"), command("look", "true")]);
    const { code, stdout, stderr } = await bench.run(run(path, "--run-id", "plain"));
    expect([code, stdout]).toEqual([0, ""]);
    expect(stderr).toMatch(/^\d\d:\d\d:\d\d ▸ edit$/m);
    expect(stderr).toMatch(/✔ look/);
    expect(stderr).toMatch(/^SUCCESS in /m);
    expect(stderr).toContain(join(directory("plain"), "report.html"));
    expect(stderr).toContain("glovebox apply plain");
  });

  test("--json prints the report, and --quiet nothing else", async () => {
    const path = blueprint("json", [command("a", "true")]);
    const { code, stdout, stderr } = await bench.run(run(path, "--json", "--quiet"));
    expect([code, stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout)).toMatchObject({ schemaVersion: 1, status: "success", blueprint: "json" });
  });

  test("--json=stream prints each event, numbered without a gap", async () => {
    const path = blueprint("stream", [command("a", "echo hello")]);
    const { code, stdout } = await bench.run(run(path, "--json=stream", "--quiet"));
    const events = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as RunEvent);
    expect(code).toBe(0);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1));
    expect(events.at(-1)).toMatchObject({ type: "run.finished", status: "success" });
  });

  test("a node that fails: exit 1, its last lines and how to see it again", async () => {
    const path = blueprint("red", [command("test", "echo 'expected 3' >&2; exit 7")]);
    const { code, stderr } = await bench.run(run(path, "--run-id", "red"));
    expect(code).toBe(1);
    expect(stderr).toContain("failure: test with exit code 7");
    expect(stderr).toContain("│ expected 3");
    const again = /again: glovebox (exec --id [0-9a-f]{16} -- 'sh' '-c' '.*')$/m.exec(stderr)?.[1] ?? "";
    const line = `"${process.execPath}" "${program}" ${again}`;
    const typed = promisify(execFile)("sh", ["-c", line], { env: bench.env, cwd: bench.path });
    await expect(typed).rejects.toMatchObject({ code: 7, stderr: "expected 3\n" });
    expect(stderr).toContain("glovebox resume red --from test");
  });

  test("apply --branch makes the work a branch, and says what stops it", async () => {
    const path = blueprint("land", [command("edit", "echo landed > landed.txt")]);
    expect((await bench.run(run(path, "--run-id", "land"))).code).toBe(0);
    const landed = await bench.run(["apply", "land", "--branch", "work/land", "--json"]);
    expect(landed.code).toBe(0);
    expect(JSON.parse(landed.stdout)).toMatchObject({ run: "land", branch: "work/land", files: ["landed.txt"] });
    expect(git(repo, "show", "work/land:landed.txt")).toBe("landed");
    const taken = await bench.run(["apply", "land", "--branch", "main"]);
    expect(taken).toMatchObject({ code: 1, stdout: "" });
    expect(taken.stderr).toMatch(/^glovebox: Branch "main" is checked out at .*\nhint: .*\n$/);
    const wrong = await bench.run(["apply", "land", "--branch", "work/land", "--expect", "nowhere"]);
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('Invalid --expect "nowhere"') });
    expect(await bench.run(["apply", "land", "--expect", "main"])).toMatchObject({ code: 2 });
  });

  test("--backend chooses the backend, and --sandbox is its older name", async () => {
    const path = blueprint("where", [command("a", "true")]);
    for (const flag of ["--backend", "--sandbox"]) {
      const { stdout } = await bench.run(run(path, flag, "local", "--dry-run", "--json"), {
        env: { GLOVEBOX_BACKEND: "docker" },
      });
      expect(JSON.parse(stdout)).toMatchObject({ backend: "local" });
    }
  });

  test("a red gate: the line to repeat it has the directory and the variables, secrets only by name", async () => {
    const check = {
      id: "env",
      shell: "pwd >&2; env >&2; exit 9",
      env: { PLAIN: "it's\ta tab", OWN_TOKEN: "hush-hush" },
    };
    const gate = {
      id: "green",
      kind: "gate",
      cwd: "sub",
      env: { MODE: "strict" },
      secrets: ["DEPLOY"],
      checks: [check],
    };
    const path = blueprint("env", [command("dir", "mkdir -p sub"), gate], { sandbox: { env: { EVERY: "where" } } });
    const env = { DEPLOY: "a-real-secret-value" };
    const { code, stdout, stderr } = await bench.run(run(path, "--run-id", "env", "--json"), { env });
    expect(code).toBe(1);
    expect(stdout + stderr).not.toContain("a-real-secret-value");
    const again = /again: glovebox (exec --id [0-9a-f]{16} --cwd sub .*)$/m.exec(stderr)?.[1] ?? "";
    expect(again).toContain("-e MODE=strict");
    expect(again).toContain(" -e OWN_TOKEN -e DEPLOY -- ");
    const line = `"${process.execPath}" "${program}" ${again}`;
    const typed = promisify(execFile)("bash", ["-c", line], {
      env: { ...bench.env, ...env, OWN_TOKEN: "mine" },
      cwd: bench.path,
    });
    const failed = (await typed.catch((error: unknown) => error)) as { code: number; stderr: string };
    expect(failed.code).toBe(9);
    const lines = failed.stderr.split("\n");
    expect(lines).toEqual(
      expect.arrayContaining([expect.stringMatching(/\/sub$/), "PLAIN=it's\ta tab", "EVERY=where"]),
    );
    expect(lines).toEqual(expect.arrayContaining(["MODE=strict", "OWN_TOKEN=mine", "DEPLOY=a-real-secret-value"]));
  });

  test.each([
    ["no blueprint", ["run", "-m", "x"], /needs a blueprint/],
    ["no intent", ["run", "hello"], /needs --intent/],
    ["one that is not there", ["run", "helo", "-m", "x"], /did you mean hello/],
    ["a limit that is none", ["run", "hello", "-m", "x", "--max-cost", "free"], /dollars/],
    ["a token as a flag", ["run", "hello", "-m", "x", "--github-token", "t"], /unknown flag/],
    ["--json of something", ["run", "hello", "-m", "x", "--json=all"], /=stream/],
    ["a repository that is none", ["run", "hello", "-m", "x", "--repo", "./nowhere"], /no such directory/],
    ["a backend that there is not", ["run", "hello", "-m", "x", "--backend", "dokcer"], /dokcer/],
    ["an agent that there is not", ["run", "hello", "-m", "x", "--agent", "claude"], /no agent "claude"/],
    ["a path that the service cannot see", ["run", "hello", "-m", "x", "--sandbox", "daytona"], /not a local path/],
    [
      "a branch that is checked out",
      ["run", "hello", "-m", "x", "--repo", "repo", "--branch", "main"],
      /"main" is checked out at/,
    ],
    ["a spec that is not there", ["run", "hello", "-m", "x", "--spec", "nowhere.md"], /Invalid spec "nowhere.md"/],
    [
      "an agent without a price",
      ["run", "bug-fix", "-m", "x", "--agent", "codex", "--max-cost", "5"],
      /cost limit of \$5/,
    ],
  ])("[S4-AC-21] %s: exit 2 and what to do, before anything is made", async (what, args, message) => {
    const runId = `x${what.replaceAll(/[^a-z]+/g, "-")}`;
    const { code, stderr } = await bench.run([...args, "--run-id", runId, "--out", join(bench.path, "refused")]);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
    expect(stderr).toMatch(/^glovebox: .+\nhint: .+\n$/);
    expect(existsSync(join(bench.path, "refused"))).toBe(false);
  });

  test("a sandbox that cannot be had: exit 3", async () => {
    const env = { DOCKER_HOST: `unix://${join(bench.path, "no.sock")}` };
    const { code, stderr } = await bench.run(run("hello", "--sandbox", "docker", "--image", "busybox"), { env });
    expect(code).toBe(3);
    expect(stderr).toContain("no.sock");
  });

  test.each([
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)("%s: the report has the exit code of the process", async (signal, expected) => {
    const runId = signal.toLowerCase();
    const path = blueprint(runId, [command("wait", "echo waiting; sleep 60")]);
    const going = bench.start(run(path, "--run-id", runId, "--json=stream"));
    await going.printed('"text":"waiting');
    going.child.kill(signal);
    expect((await going.ended).code).toBe(expected);
    expect(report(runId)).toMatchObject({ status: "cancelled", exitCode: expected });
  });

  test("nothing changed: exit 6, or 0 when that is allowed", async () => {
    const path = join(bench.path, "idle.yaml");
    writeFileSync(
      path,
      "version: 1\nname: idle\nexpectsChanges: true\nnodes: [{ id: a, kind: command, run: [true] }]\n".replace(
        "[true]",
        '["true"]',
      ),
    );
    expect((await bench.run(run(path))).code).toBe(6);
    expect((await bench.run(run(path, "--allow-no-changes"))).code).toBe(0);
  });

  test("[S4-AC-15] [S4-AC-21] --push with the token of the environment; without one exit 4, or 0 when it may fail", async () => {
    const path = blueprint("pushed", [command("edit", "echo x > pushed.txt")]);
    const { GITHUB_TOKEN, ...elsewhere } = github.env;
    const missing = await bench.run(run(path, "--push"), { env: elsewhere });
    expect(missing.code).toBe(4);
    expect(missing.stderr).toContain("GITHUB_TOKEN required for push");
    expect(missing.stderr).toMatch(/! there is no token for GitHub: nothing will be pushed[\s\S]*▸ edit/);
    const optional = await bench.run(run(path, "--push", "--push-optional"), { env: elsewhere });
    expect(optional.code).toBe(0);
    const done = await bench.run(run(path, "--push", "--run-id", "pushed"), { env: github.env });
    expect(done.code).toBe(0);
    expect(done.stderr).toMatch(/PR +http:\/\/127\.0\.0\.1:\d+\/acme\/widgets\/pull\/\d+/);
    expect(done.stderr).not.toContain(GITHUB_TOKEN);
    expect(git(github.remote, "show", "harness/pushed/pushed:pushed.txt")).toBe("x");
  });

  test("push later: exactly the files of the report", async () => {
    const path = blueprint("later", [command("edit", "echo later > later.txt")]);
    await bench.run(run(path, "--run-id", "later"));
    const none = await bench.run(["push", "later"]);
    expect([none.code, none.stderr]).toEqual([4, expect.stringContaining("GITHUB_TOKEN required")]);
    const { GITHUB_TOKEN, ...others } = github.env;
    const { code, stdout, stderr } = await bench.run(["push", "later"], { env: { ...others, GH_TOKEN: GITHUB_TOKEN } });
    expect(stderr).toBe("");
    expect([code, stdout]).toEqual([0, expect.stringMatching(/\/acme\/widgets\/pull\/\d+\n$/)]);
    expect(git(github.remote, "rev-parse", "harness/later/later^{tree}")).toBe(report("later").tree);
    expect(report("later").pushResult).toMatchObject({ pushed: true, state: "ok" });
  });

  test("--dry-run checks everything and makes nothing", async () => {
    const { code, stdout } = await bench.run(run("hello", "--dry-run", "--run-id", "dry", "--push"));
    expect([code, existsSync(directory("dry"))]).toEqual([0, false]);
    expect(stdout).toContain("1. greet (command)");
    expect(stdout).toContain("then push harness/dry/hello");
  });

  test("in GitHub Actions it speaks to the runner, and the inside cannot", async () => {
    const [summary, output] = [join(bench.path, "summary.md"), join(bench.path, "output.txt")];
    const path = blueprint("actions", [command("bad", "echo '::set-output name=x::y'; echo ' ::error::z'; exit 2")]);
    const env = { GITHUB_ACTIONS: "true", GITHUB_STEP_SUMMARY: summary, GITHUB_OUTPUT: output };
    const { code, stdout } = await bench.run(run(path, "--run-id", "actions"), { env });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^::group::bad$/m);
    expect(stdout).toMatch(/^::error title=bad::/m);
    expect(stdout.split("\n").filter((line) => /^\s*::(set-output|error::z)/.test(line))).toEqual([]);
    expect(readFileSync(summary, "utf8")).toMatch(/^# failed: `actions`/);
    expect(readFileSync(output, "utf8")).toContain("run_id=actions\nstatus=failed\n");
  });

  test("a second SIGINT ends it at once: exit 130, and resume goes on all the same", async () => {
    const path = blueprint("twice", [
      command("first", "echo 1 >> count"),
      command("stubborn", "trap '' TERM INT; echo waiting; while :; do sleep 1; done"),
    ]);
    const going = bench.start(run(path, "--run-id", "twice", "--json=stream"));
    await going.printed('"text":"waiting');
    going.child.kill("SIGINT");
    going.child.kill("SIGINT");
    const { code, signal } = await going.ended;
    expect(code ?? signal).toBe(130);
    changePlan(bench.env["GLOVEBOX_HOME"] ?? "", directory("twice"), "twice", (text) =>
      text.replaceAll("while :; do sleep 1; done", "true"),
    );
    const { code: after, stdout } = await bench.run(["resume", "twice", "--json"]);
    expect(after).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ status: "success", nodes: [{ reused: true }, { id: "stubborn" }] });
  });

  test("logs -f follows a run of another process, and stop ends it", async () => {
    const path = blueprint("followed", [command("talk", "for i in 1 2 3; do echo line-$i; done; sleep 60")]);
    const going = bench.start(run(path, "--run-id", "followed", "--quiet"));
    await until(() => existsSync(join(directory("followed"), "events.jsonl")));
    const follower = bench.start(["logs", "followed", "-f"]);
    await follower.printed("line-3");
    const stopped = await bench.run(["stop", "followed"]);
    expect([stopped.code, stopped.stdout]).toEqual([0, "followed cancelled\n"]);
    expect((await going.ended).code).toBe(130);
    const { code, stdout } = await follower.ended;
    expect([code, stdout]).toEqual([0, "── talk\nline-1\nline-2\nline-3\n"]);
    expect((await bench.run(["stop", "followed"])).code).toBe(1);
  });

  test("show, diff and runs tell of it afterwards, from anywhere", async () => {
    const path = blueprint("shown", [command("edit", "echo shown > shown.txt; printf '\\302\\2332J\\n'")]);
    await bench.run(run(path, "--run-id", "shown"));
    const shown = await bench.run(["show", "shown"]);
    expect([shown.code, shown.stdout]).toEqual([
      0,
      expect.stringMatching(/shown · run shown · success[\s\S]*✔ edit[\s\S]*SUCCESS/),
    ]);
    const told = (await bench.run(["logs", "shown", "edit", "--json"])).stdout.trim().split("\n");
    expect(new Set(told.map((line) => (JSON.parse(line) as { nodeId: string }).nodeId))).toEqual(new Set(["edit"]));
    expect([told.join("").includes("\\u009b2J"), told.join("").includes("\u009b")]).toEqual([true, false]);
    const all = (await bench.run(["logs", "shown", "--json"])).stdout.trim().split("\n");
    expect(all.map((line) => (JSON.parse(line) as { type: string }).type)).toContain("run.started");
    expect((await bench.run(["diff", "shown"])).stdout).toContain("+shown");
    expect((await bench.run(["diff", "shown", "--name-status"])).stdout).toBe("A\tshown.txt\n");
    expect((await bench.run(["runs", "-q"])).stdout.split("\n")).toContain("shown");
    expect((await bench.run(["show", "shwn"])).stderr).toContain("did you mean shown?");
  });

  test("on a terminal each node has a line, live while it runs; output cannot drive the terminal", async () => {
    // More than the events hold: the live line shows the last of the log all the same.
    const talk = "head -c 400000 /dev/zero | tr '\\\\0' x; printf '\\nnow \\033]0;owned\\007\\n'; sleep 3";
    const path = blueprint("terminal", [command("talk", talk)]);
    await using terminals = await openTerminals();
    const { ended } = await terminals.run([process.execPath, program, ...run(path)], bench.env, {
      cols: 100,
      rows: 24,
    });
    const { exitCode, output } = await ended;
    expect(exitCode).toBe(0);
    expect(output).toMatch(/talk \d+m?s · now \\x1b\]0;owned\\x07/);
    expect(output).not.toContain("\x1b]0;");
    expect(output).toMatch(/✔.* talk/);
  });
});
