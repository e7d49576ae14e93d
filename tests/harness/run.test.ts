import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SandboxError } from "../../contracts/errors.js";
import { reportSchema } from "../../src/harness/report/report-schema.js";
import type { Checkpoint } from "../../src/harness/store/checkpoints.js";
import {
  applyRun,
  type BlueprintSpec,
  gcRuns,
  listRuns,
  type Reporter,
  type RunReport,
  removeRun,
  resumeRun,
  runHarness,
  stopRun,
} from "../../src/harness.js";
import { listSandboxes, listSnapshots, openSandbox, removeSandbox } from "../../src/sandbox.js";
import { findFaults } from "../../src/util/schema.js";
import { commitFile, createHarnessBench, type HarnessBench } from "../support/harness/bench.js";
import { withFakeAgents } from "../support/harness/fake-agents.js";
import { createRepository, git } from "../support/scratch.js";

let bench: HarnessBench;
beforeAll(async () => {
  bench = await createHarnessBench();
});
afterAll(async () => {
  await bench[Symbol.asyncDispose]();
});

const command = (id: string, shell: string): BlueprintSpec["nodes"][number] => ({ id, kind: "command", shell });

function saved(runId: string): RunReport {
  return JSON.parse(bench.file(runId, "report.json")) as RunReport;
}

describe("what a run leaves behind", () => {
  test("a directory with everything, and a repository that is as it was", async () => {
    const before = git(bench.repo, "for-each-ref");
    const report = await bench.run({
      runId: "everything",
      blueprint: {
        name: "all",
        nodes: [command("edit", "echo out; echo err >&2; echo new > new.txt"), command("look", "cat new.txt")],
      },
    });
    expect(report).toMatchObject({ status: "success", exitCode: 0, changes: { insertions: 1, deletions: 0 } });
    expect(findFaults(saved("everything"), reportSchema)).toEqual([]);
    expect(saved("everything")).toEqual(JSON.parse(JSON.stringify(report)));
    for (const name of ["run.json", "report.md", "report.html", "nodes/1-edit/result.json"]) {
      expect(bench.file("everything", name), name).not.toBe("");
    }
    for (const name of ["run.json", "report.json", "changes.patch"]) {
      expect(bench.state("everything", name), name).toBe(bench.file("everything", name));
    }
    expect(bench.state("everything", "checkpoints/2-look.json")).not.toBe("");
    expect(bench.file("everything", "nodes/1-edit/stdout.log")).toBe("out\n");
    expect(bench.file("everything", "nodes/1-edit/stderr.log")).toBe("err\n");
    expect(bench.file("everything", "changes.patch")).toContain("+new");
    const events = bench.events("everything");
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1));
    expect(events.map(({ type }) => type).filter((type) => !["checkpoint.saved", "warning"].includes(type))).toEqual([
      "run.started",
      "sandbox.creating",
      "sandbox.ready",
      "node.started",
      "node.output",
      "node.output",
      "node.finished",
      "node.started",
      "node.output",
      "node.finished",
      "sandbox.destroyed",
      "run.finished",
    ]);
    expect(git(bench.repo, "status", "--porcelain")).toBe("");
    expect(git(bench.repo, "for-each-ref", "refs/heads")).toBe(
      before
        .split("\n")
        .filter((line) => line.includes("refs/heads"))
        .join("\n"),
    );
    expect((await listSandboxes()).some(({ id }) => id === report.sandbox?.id)).toBe(false);
  });

  test("enough to do it again", async () => {
    await bench.run({ runId: "again-1", blueprint: { name: "again", nodes: [command("edit", "echo x > x.txt")] } });
    const plan = JSON.parse(bench.file("again-1", "run.json")) as {
      blueprint: { document: BlueprintSpec };
      ref: string;
    };
    const report = await bench.run({ runId: "again-2", blueprint: plan.blueprint.document });
    expect(report).toMatchObject({ status: "success" });
    expect(bench.file("again-2", "changes.patch")).toBe(bench.file("again-1", "changes.patch"));
  });

  test("all that a node printed, beyond what events hold, exact and without its secrets, wherever these were cut", async () => {
    const secret = "sé-cret-value-0123456789";
    const [told, bytes]: [string[], Buffer[]] = [[], []];
    const report = await bench.run({
      blueprint: {
        name: "much",
        nodes: [
          {
            ...{ id: "talk", name: "Much Talk", kind: "command", secrets: ["MUCH"] },
            // The end of each piece is at another place in the secret, and within a character.
            shell: `i=0; while [ $i -lt 40 ]; do head -c $((65530 - i)) /dev/zero | tr '\\0' x; printf '%s' "$MUCH"; i=$((i + 1)); done; printf '\\377é'`,
          },
        ],
      },
      secretSource: { MUCH: secret },
      reporter: {
        nodeOutput: (name, chunk) => void told.push(`${name}:${chunk}`),
        nodeBytes: (output) => void bytes.push(Buffer.from(output.bytes)),
      },
    });
    expect(report.status).toBe("success");
    const pieces = Array.from({ length: 40 }, (_, n) => `${"x".repeat(65_530 - n)}[REDACTED]`);
    const whole = Buffer.concat([Buffer.from(pieces.join("")), Buffer.from([0xff]), Buffer.from("é")]);
    const log = readFileSync(join(bench.directoryOf(report.runId), "nodes", "1-talk", "stdout.log"));
    expect(log.equals(whole)).toBe(true);
    expect(Buffer.concat(bytes).equals(whole)).toBe(true);
    expect(told.every((each) => each.startsWith("Much Talk:"))).toBe(true);
    expect(told.map((each) => each.slice("Much Talk:".length)).join("")).toBe(whole.toString());
    const events = bench.events(report.runId).flatMap((event) => (event.type === "node.output" ? [event.text] : []));
    expect(events.join("")).toBe(
      `${whole.toString("utf8", 0, 256 * 1024)}\n[... the rest is in nodes/1-talk/stdout.log ...]\n`,
    );
  });

  test("a report, also when a reporter throws at every call", async () => {
    const fail = (): never => {
      throw new Error("no ink");
    };
    const reporter: Reporter = {
      event: fail,
      nodeStart: fail,
      nodeOutput: fail,
      nodeComplete: fail,
      runComplete: fail,
    };
    const report = await bench.run({ blueprint: { name: "r", nodes: [command("a", "echo 1")] }, reporter });
    expect(report).toMatchObject({ status: "success", exitCode: 0 });
    expect(report.warnings.filter((text) => text.includes("no ink")).length).toBeGreaterThanOrEqual(4);
  });

  test("a report, also when a node throws", async () => {
    const seen: RunReport[] = [];
    const report = await bench.run({
      keep: "never",
      reporter: { runComplete: (each) => void seen.push(each) },
      blueprint: {
        name: "throws",
        nodes: [
          command("edit", "echo half > a.txt"),
          {
            id: "bad",
            kind: "command",
            exec: () => {
              throw new TypeError("oops");
            },
          },
        ],
      },
    });
    expect(report).toMatchObject({ status: "failed", exitCode: 1 });
    expect(report.nodes.map(({ status }) => status)).toEqual(["success", "failure"]);
    expect(bench.file(report.runId, "changes.patch")).toContain("+half");
    expect(seen).toEqual([report]);
  });

  test("a report, also when there is no sandbox", async () => {
    const seen: RunReport[] = [];
    const report = await bench.run({
      blueprint: { name: "x", nodes: [command("a", "true")] },
      sandbox: { mounts: [{ source: join(bench.repo, "nothing") }] },
      reporter: { runComplete: (each) => void seen.push(each) },
    });
    expect(report).toMatchObject({ status: "error", exitCode: 3, error: { code: "not_found" }, nodes: [] });
    expect(findFaults(saved(report.runId), reportSchema)).toEqual([]);
    expect(bench.file(report.runId, "report.html")).toContain("not_found");
    expect(seen).toHaveLength(1);
  });
});

describe.concurrent("a limit of the whole run", () => {
  test.each([
    ["cost", { costUsd: 0.4 }, { allowed: 0.4, used: 0.5 }],
    ["turns", { turns: 2 }, { allowed: 2, used: 2 }],
  ])("of %s holds for all agents together: exit 5, and what they did is kept", async (limit, limits, hit) => {
    const ask = (id: string): BlueprintSpec["nodes"][number] => ({
      id,
      kind: "agent",
      agent: "claude-code",
      prompt: `fake: sh echo ${id} >> a.txt`,
    });
    const report = await bench.run({
      blueprint: { name: "agents", nodes: [ask("one"), ask("two"), ask("three")] },
      runId: `limit-of-${limit}`,
      keep: "never",
      limits,
      secretSource: { ANTHROPIC_API_KEY: "sk-very-secret-value" },
      sandbox: withFakeAgents(join(bench.scratch.path, limit)),
    });
    expect(report).toMatchObject({ status: "limit", exitCode: 5, limitsHit: [{ limit, nodeId: "three", ...hit }] });
    expect(report.nodes.map(({ status }) => status)).toEqual(["success", "success", "limit"]);
    expect(report.cost).toEqual({ usd: 0.5, unpriced: [] });
    expect(bench.file(report.runId, "changes.patch")).toContain("+one\n+two\n");
    expect(findFaults(saved(report.runId), reportSchema)).toEqual([]);
  });
});

describe.concurrent("going on", () => {
  /** Makes a run look as if its process had died before it could write down the end. */
  const unfinish = (runId: string): void => {
    const { finishedAt: _, ...report } = saved(runId);
    writeFileSync(join(bench.stateOf(runId), "report.json"), JSON.stringify({ ...report, status: "running" }));
  };
  const checkpoints = (runId: string, ...names: string[]): Checkpoint[] =>
    names.map((name) => JSON.parse(bench.state(runId, `checkpoints/${name}.json`)) as Checkpoint);

  test("files are saved after each node that changed something, also what git does not see, and only then", async () => {
    const nodes = [
      command("look", "true"),
      command("edit", "echo 1 >> count"),
      command("again", "cat count"),
      command("hidden", "mkdir -p ignored; echo warm > ignored/x"),
      command(
        "quiet",
        "touch -r a.txt stamp; cp -p a.txt b; printf 2 | dd of=count conv=notrunc; touch -r stamp count",
      ),
      command("commit", "git add -A; git -c user.name=x -c user.email=x commit -qm x"),
      command("last", "git status --porcelain"),
    ];
    const { runId } = await bench.run({ blueprint: { name: "steps", nodes }, keep: "never" });
    const names = nodes.map(({ id }, at) => `${at + 1}-${id}`);
    const ids = checkpoints(runId, ...names).map(({ isSaved, snapshotId }) => (isSaved ? snapshotId : "not saved"));
    const [look, edit, again, hidden, quiet, commit, last] = ids;
    expect([look, again, last]).toEqual([undefined, edit, commit]);
    expect(new Set([edit, hidden, quiet, commit, "not saved", undefined])).toHaveLength(6);
  });

  test("what is done again is not taken from an earlier session, and its snapshots are gone", async () => {
    const nodes = [
      command("one", "echo 1 >> count"),
      command("two", "echo 2 >> count"),
      command("three", "test -e go"),
    ];
    const first = await bench.run({ blueprint: { name: "again", nodes }, runId: "done-again" });
    expect(first).toMatchObject({ status: "failed", sandbox: { kept: true } });
    const mine = async (): Promise<string[]> =>
      (await listSnapshots()).filter(({ sandboxId }) => sandboxId === first.sandbox?.id).map(({ id }) => id);
    expect(await mine()).toHaveLength(3);
    await resumeRun({ runId: "done-again" });
    // The files that it went on with, and those of its end.
    expect(await mine()).toHaveLength(3);
    const last = await resumeRun({ runId: "done-again", from: "two" });
    expect(last.nodes.map(({ id, reused }) => [id, reused === true])).toEqual([
      ["one", true],
      ["two", false],
      ["three", false],
    ]);
    expect(bench.file("done-again", "changes.patch")).toContain("+1\n+2\n");
    expect(existsSync(join(bench.stateOf("done-again"), "checkpoints", "3-three.json"))).toBe(false);
    await removeRun("done-again");
    expect(await mine()).toEqual([]);
    expect((await listSnapshots()).filter(({ sandboxId }) => sandboxId === last.sandbox?.id)).toEqual([]);
    expect(git(bench.repo, "for-each-ref", `refs/glovebox/${first.sandbox?.id}`)).toBe("");
  });

  test("files that were mended in the sandbox are not lost when the process dies in the next session", async () => {
    const nodes = [command("one", "echo 1 >> count"), command("two", "test -e ignored/go")];
    const first = await bench.run({ blueprint: { name: "mended", nodes }, runId: "mended" });
    const sandbox = await openSandbox({ id: first.sandbox?.id ?? "", backend: "local", keep: true });
    await sandbox.writeFile("mended.txt", "by hand");
    await sandbox.teardown();
    await resumeRun({ runId: "mended" });
    await removeSandbox(first.sandbox?.id ?? "");
    unfinish("mended");
    const again = await resumeRun({ runId: "mended" });
    expect(again).toMatchObject({ status: "failed", resumedFrom: "two", nodes: [{ reused: true }, { id: "two" }] });
    expect(bench.file("mended", "changes.patch")).toContain("+by hand");
  });

  test("one whose process died after the last node does none again, and gets its end", async () => {
    const nodes = [command("one", "echo 1 >> count"), command("two", "echo 2 >> count")];
    const { runId } = await bench.run({ blueprint: { name: "ended", nodes }, keep: "never" });
    unfinish(runId);
    const again = await resumeRun({ runId });
    expect(again).toMatchObject({ status: "success", exitCode: 0, nodes: [{ reused: true }, { reused: true }] });
    expect(again.resumedFrom).toBeUndefined();
    expect(bench.file(runId, "changes.patch")).toContain("+1\n+2\n");
  });

  test("behind the node that it was to stop after, once it did", async () => {
    const nodes = [command("one", "echo 1 >> count"), command("two", "echo 2 >> count")];
    const { runId } = await bench.run({ blueprint: { name: "until", nodes }, keep: "never", until: "one" });
    unfinish(runId);
    expect(await resumeRun({ runId })).toMatchObject({ status: "success", nodes: [{ id: "one", reused: true }] });
    const again = await resumeRun({ runId });
    expect(again).toMatchObject({ status: "success", resumedFrom: "two", nodes: [{ id: "one" }, { id: "two" }] });
    expect(bench.file(runId, "changes.patch")).toContain("+1\n+2\n");
  });

  const flaky: BlueprintSpec = {
    name: "flaky",
    nodes: [
      command("once", "echo x >> count; mkdir -p ignored; echo warm > ignored/x"),
      command("gate", "test -e ignored/go"),
      command("after", "cat count; echo done > done.txt"),
    ],
  };

  test.each(["failed", "never"] as const)("where it stopped, with keep %s", async (keep) => {
    const first = await bench.run({ blueprint: flaky, keep });
    expect(first).toMatchObject({ status: "failed", sandbox: { kept: keep === "failed" } });
    const again = await resumeRun({ runId: first.runId });
    expect(again).toMatchObject({ status: "failed", resumedFrom: "gate" });
    expect(again.nodes[0]).toMatchObject({ id: "once", reused: true });
    expect(bench.file(first.runId, "changes.patch").match(/^\+x$/gm)).toHaveLength(1);
    const seqs = bench.events(first.runId).map(({ seq }) => seq);
    expect(seqs).toEqual(seqs.map((_, at) => at + 1));
  });

  test("from a node that is named, with the files as they were before it", async () => {
    const first = await bench.run({ blueprint: flaky, keep: "never" });
    const again = await resumeRun({ runId: first.runId, from: "once" });
    expect(again).toMatchObject({ status: "failed", resumedFrom: "once" });
    expect(bench.file(first.runId, "changes.patch").match(/^\+x$/gm)).toHaveLength(1);
    await expect(resumeRun({ runId: first.runId, from: "after" })).rejects.toMatchObject({
      code: "invalid_argument",
      hint: "--from gate",
    });
    await expect(resumeRun({ runId: first.runId, from: "nothing" })).rejects.toMatchObject({
      code: "invalid_argument",
    });
  });

  test("not with one that has done everything, nor with one that nobody knows", async () => {
    const { runId } = await bench.run({ blueprint: { name: "ok", nodes: [command("a", "true")] }, runId: "complete" });
    await expect(resumeRun({ runId })).rejects.toMatchObject({ code: "conflict" });
    await expect(resumeRun({ runId: "complet" })).rejects.toMatchObject({
      code: "not_found",
      hint: "did you mean complete?",
    });
    await expect(bench.run({ blueprint: flaky, runId })).rejects.toMatchObject({ code: "conflict" });
  });

  test("after it was cancelled, and after it was stopped from outside", async () => {
    const waits: BlueprintSpec = {
      name: "waits",
      nodes: [
        command("work", "echo some > a.txt; echo written; test -e ignored/go || sleep 60"),
        command("after", "true"),
      ],
    };
    const controller = new AbortController();
    const written: Reporter = { nodeOutput: () => controller.abort() };
    const first = await bench.run({ blueprint: waits, signal: controller.signal, reporter: written, keep: "always" });
    expect(first).toMatchObject({ status: "cancelled", exitCode: 130, nodes: [{ status: "cancelled" }] });
    expect(bench.file(first.runId, "changes.patch")).toContain("+some");
    const going = resumeRun({
      runId: first.runId,
      reporter: { nodeStart: () => void stopRun(first.runId).catch(() => undefined) },
    });
    await expect(going).resolves.toMatchObject({ status: "cancelled", resumedFrom: "work" });
    await expect(stopRun(first.runId)).rejects.toMatchObject({ code: "conflict" });
    await removeSandbox(first.sandbox?.id ?? "");
  });
});

describe.concurrent("repositories", () => {
  const touch: BlueprintSpec = {
    name: "touch",
    nodes: [command("edit", "echo new > new.txt; git log --format=%s | head -1")],
  };
  const place = (name: string): string => join(bench.scratch.path, name);

  test("one that is dirty: the run starts from the commit, and says so", async () => {
    const repo = createRepository(place("dirty"));
    writeFileSync(join(repo, "a.txt"), "mine\n");
    // As another run leaves it for a moment, before it has written that git ignores the folder.
    mkdirSync(join(repo, ".glovebox", "runs", "other"), { recursive: true });
    writeFileSync(join(repo, ".glovebox", "runs", "other", "run.json"), "{}");
    const report = await bench.run({ repo, blueprint: { name: "d", nodes: [command("a", "cat a.txt")] } });
    expect(report).toMatchObject({ status: "success", nodes: [{ output: "one more\n" }] });
    expect(report.warnings).toEqual([expect.stringContaining("1 file that is not committed")]);
    expect(readFileSync(join(repo, "a.txt"), "utf8")).toBe("mine\n");
  });

  test("a bare one, and a shallow one", async () => {
    const bare = place("bare.git");
    git(bench.scratch.path, "clone", "--quiet", "--bare", bench.repo, bare);
    const report = await bench.run({ repo: bare, blueprint: touch, out: place("runs-of-bare") });
    expect(report).toMatchObject({ status: "success", changes: { insertions: 1 } });
    const shallow = place("shallow");
    git(bench.scratch.path, "clone", "--quiet", "--depth=1", `file://${bench.repo}`, shallow);
    const second = await bench.run({ repo: shallow, blueprint: touch });
    expect(second).toMatchObject({ status: "success", changes: { insertions: 1 } });
    expect(second.warnings).toEqual([expect.stringContaining("shallow")]);
  });

  test("one that is itself a worktree: its own commit is the start", async () => {
    const tree = place("linked");
    git(bench.repo, "worktree", "add", "--quiet", tree, "other");
    const report = await bench.run({ repo: tree, blueprint: touch, runId: "linked" });
    expect(report).toMatchObject({ status: "success", baseCommit: git(bench.repo, "rev-parse", "other") });
    expect(report.nodes[0]?.output).toBe("first\n");
    expect(git(bench.repo, "branch", "--list", "harness/linked/*")).toBe("");
  });

  test("another commit to start from", async () => {
    const report = await bench.run({ ref: "v1", blueprint: touch });
    expect(report.nodes[0]?.output).toBe("first\n");
    await expect(bench.run({ ref: "nowhere", blueprint: touch })).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test("org/repo and a URL are cloned, with the token, and start at the default branch", async () => {
    for (const repo of ["acme/widgets", bench.github.url]) {
      const report = await bench.run({ repo, blueprint: touch, out: place("runs-of-clones"), push: true });
      expect(report).toMatchObject({ status: "success", pushResult: { state: "ok" } });
      expect(report.nodes[0]?.output).toBe("second\n");
    }
  });

  test.each([
    ["empty", /has no commit yet/],
    ["no-repository", /not a git repository/],
  ])("one that is %s is refused with what to do", async (name, message) => {
    mkdirSync(place(name));
    if (name === "empty") git(place(name), "init", "--quiet");
    const error: unknown = await bench.run({ repo: place(name), blueprint: touch }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SandboxError);
    expect(error).toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(message),
      hint: expect.stringContaining("git"),
    });
    expect(existsSync(join(place(name), ".glovebox"))).toBe(false);
  });

  test.each(["./nowhere", "nowhere"])("%s is not there", async (repo) => {
    await expect(bench.run({ repo, blueprint: touch })).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("bad input", () => {
  const fine: BlueprintSpec = { name: "fine", nodes: [command("a", "true")] };
  const two: BlueprintSpec = { name: "two", nodes: [command("a", "true"), command("b", "true")] };
  const wantsSpec: BlueprintSpec = { name: "spec", nodes: [{ id: "a", kind: "command", run: ["echo", "{{ spec }}"] }] };
  test.each([
    ["an intent of 100 kB", { intent: "x".repeat(100_000) }, /100000 bytes/],
    ["an intent with a control character", { intent: "a\u001b[31mb" }, /U\+001b/],
    ["an empty intent", { intent: "  " }, /intent/],
    ["a run id that is a path", { runId: "../x" }, /run id/],
    ["a branch that is none", { branch: "a..b" }, /branch/],
    ["a branch that is checked out", { branch: "main" }, /"main" is checked out at \//],
    ["a node that is not there", { from: "b" }, /no such node/],
    ["a last node before the first", { from: "b", until: "a", blueprint: two }, /it comes before "b"/],
    ["a spec that is not there but used", { blueprint: wantsSpec }, /needs a spec/],
    ["an unknown option", { pushh: true } as object, /pushh/],
    ["a push rule that is none", { pushOn: "never" as never }, /pushOn/],
    ["an unknown input", { inputs: { a: 1 } }, /no input/],
  ])("%s is refused before anything is made", async (_, options, message) => {
    const before = await listRuns();
    await expect(bench.run({ blueprint: fine, ...options })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(message),
    });
    expect(await listRuns()).toEqual(before);
  });
});

describe("afterwards", () => {
  test("the changes are brought into the working tree, three-way, unless it is dirty", async () => {
    const repo = createRepository(join(bench.scratch.path, "apply"));
    const edit: BlueprintSpec = { name: "edit", nodes: [command("e", "echo theirs > a.txt; echo new > new.txt")] };
    const { runId } = await runHarness({ repo, intent: "x", sandboxType: "local", blueprint: edit });
    writeFileSync(join(repo, "sub", "b.txt"), "mine\n");
    await expect(applyRun(runId)).rejects.toMatchObject({ code: "conflict" });
    expect(existsSync(join(repo, "new.txt"))).toBe(false);
    git(repo, "commit", "--quiet", "-am", "mine");
    expect(await applyRun(runId)).toMatchObject({ directory: repo, conflicts: [] });
    expect(git(repo, "diff", "--cached", "--name-only").split("\n")).toEqual(["a.txt", "new.txt"]);
    git(repo, "reset", "--quiet", "--hard");
    commitFile(repo, "a.txt", "mine too\n");
    expect(await applyRun(runId)).toMatchObject({ conflicts: ["a.txt"] });
  });

  test("runs are cleaned up with all that they hold", async () => {
    const report = await bench.run({
      runId: "old",
      keep: "always",
      blueprint: { name: "old", nodes: [command("e", "echo x > x.txt; sleep 1.1")] },
    });
    const mine = async (): Promise<number> =>
      (await listSnapshots()).filter(({ sandboxId }) => sandboxId === report.sandbox?.id).length;
    expect(await mine()).toBeGreaterThan(0);
    expect((await gcRuns({ olderThan: 3_600_000 })).removed).toEqual([]);
    expect((await gcRuns({ olderThan: 0, dryRun: true })).removed).toContain("old");
    expect((await gcRuns({ olderThan: 0 })).removed).toContain("old");
    expect(await mine()).toBe(0);
    expect(existsSync(bench.directoryOf("old"))).toBe(false);
    expect((await listSandboxes()).filter(({ state }) => state === "kept")).toEqual([]);
    expect(git(bench.repo, "branch", "--list", "harness/old/*")).toBe("");
  });
});
