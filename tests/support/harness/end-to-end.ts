import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type BlueprintSpec,
  gcRuns,
  type HarnessOptions,
  listRuns,
  type NodeSpec,
  pushRunAgain,
  type Reporter,
  resumeRun,
} from "../../../src/harness.js";
import { listSandboxes, listSnapshots } from "../../../src/sandbox.js";
import { type Bench, createBench } from "../cli.js";
import { git } from "../scratch.js";
import { createHarnessBench, type HarnessBench } from "./bench.js";
import { changePlan } from "./change-plan.js";

/** A backend as the end-to-end cases see it. */
export interface EndToEndBackend {
  /** What a blueprint says of the sandbox. */
  readonly sandbox?: NonNullable<BlueprintSpec["sandbox"]>;
  /** How a run is asked for; the repository is that of the bench unless another is named. */
  readonly options: Partial<HarnessOptions> & { sandboxType: string };
  /** Whether git is inside. */
  readonly hasGit: boolean;
  /** More environment of a run in a process of its own. */
  readonly env?: Record<string, string>;
  /** Takes the sandbox away under a run. */
  sever(sandbox: { id: string; workDir: string }): Promise<void>;
  /** What the backend still has of any sandbox. */
  left(): Promise<string[]>;
  close?(): Promise<void>;
}

const AGENT = fileURLToPath(new URL("../../fakes/programs/agent.sh", import.meta.url));
const PATH = ".fake:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const command = (id: string, shell: string): NodeSpec => ({ id, kind: "command", shell });

/** A gate that wants `good` in a.txt, and a program that stands for an agent to mend it. */
const gate = (fix: string): NodeSpec => ({
  id: "green",
  kind: "gate",
  checks: [{ id: "test", shell: "grep -q good a.txt" }],
  onFail: { agent: "command", command: ["sh", "-c", `cat > /dev/null; ${fix}`] },
  protect: ["sub/**"],
});

const EDIT = command("edit", "echo changed > a.txt; echo new > new.txt");
const WAIT = [
  command("first", "echo 1 >> count; mkdir -p ignored; echo warm > ignored/x"),
  command("wait", "echo half >> half.txt; echo waiting; sleep 60"),
  command("last", "cat count"),
];

/** Every end of a run, from the repository to the pull request, on one backend. */
export function describeEndToEnd(
  name: string,
  reason: string | undefined,
  prepare: (bench: HarnessBench) => Promise<EndToEndBackend>,
): void {
  if (reason !== undefined) {
    describe(`runs on ${name}`, () => test("all of it", ({ skip }) => skip(reason)));
    return;
  }
  let bench: HarnessBench;
  let backend: EndToEndBackend;
  let cli: Bench;
  beforeAll(async () => {
    bench = await createHarnessBench(addFakeAgent, true);
    cli = createBench(bench.scratch);
    refuseSome(bench);
    backend = await prepare(bench);
  });
  afterAll(async () => {
    await backend?.close?.();
    await bench?.[Symbol.asyncDispose]();
  });

  const blueprint = (id: string, nodes: NodeSpec[], more: Partial<BlueprintSpec> = {}): BlueprintSpec => ({
    name: id,
    ...(backend.sandbox && { sandbox: backend.sandbox }),
    ...more,
    nodes,
  });
  const start = (id: string, nodes: NodeSpec[], more: Partial<HarnessOptions> = {}) =>
    bench.run({
      ...backend.options,
      ...{ blueprint: blueprint(id, nodes), runId: id, out: out(), keep: "never", ...more },
    });
  const out = (): string => join(bench.scratch.path, "runs");
  const file = (runId: string, path: string): string => readFileSync(join(out(), runId, path), "utf8");
  const remote = (...args: string[]): string => git(bench.github.remote, ...args);
  const isPushed = (ref: string): boolean => remote("for-each-ref", ref) !== "";
  /** Begins a run in a process of its own, as far as its second node. */
  const startApart = async (id: string, ...more: string[]) => {
    const path = join(bench.scratch.path, `${id}.json`);
    writeFileSync(path, JSON.stringify({ version: 1, ...blueprint(id, WAIT) }));
    const { repo = bench.repo, sandboxType } = backend.options;
    const args = ["run", path, "--repo", repo, "-m", "mend it", "--run-id", id, "--out", out(), "--json=stream"];
    const going = cli.start([...args, "--sandbox", sandboxType, ...more], { ...bench.github.env, ...backend.env });
    await going.printed('"text":"waiting');
    return going;
  };
  /** Goes on, now that nothing waits any more. */
  const goOn = async (runId: string) => {
    changePlan(bench.scratch.home, join(out(), runId), runId, (text) => text.replaceAll("sleep 60", "true"));
    const report = await resumeRun({ runId, githubToken: bench.github.env.GITHUB_TOKEN });
    expect(report.error).toBeUndefined();
    expect(report).toMatchObject({ status: "success", resumedFrom: "wait" });
    expect(report.nodes.map(({ id, reused }) => [id, reused === true])).toEqual([
      ["first", true],
      ["wait", false],
      ["last", false],
    ]);
    expect(report.nodes[2]?.output).toBe("1\n");
    return report;
  };

  describe.concurrent(`runs on ${name}`, () => {
    test("[S4-AC-15] [S4-AC-22] [S4-AC-23] [S4-TEST-push-triggers] [S4-TEST-push-schema] [S4-STATE-ok] success: an agent mends, a gate proves it, the branch is pushed and a pull request opened", async () => {
      const work: NodeSpec = {
        id: "work",
        kind: "agent",
        agent: "claude-code",
        prompt: "{{ intent }}\nfake: sh echo good > a.txt; mkdir -p ignored; echo x > ignored/x\nfake: say mended",
      };
      const save: NodeSpec = { id: "save", kind: "commit", message: "fix: {{ intent }}" };
      const report = await start("success", [work, gate("exit 1"), ...(backend.hasGit ? [save] : [])], {
        blueprint: blueprint("Mend It!", [work, gate("exit 1"), ...(backend.hasGit ? [save] : [])], {
          sandbox: { ...backend.sandbox, env: { PATH } },
        }),
        secretSource: { ANTHROPIC_API_KEY: "sk-very-secret-value" },
        intent: "mend\nthe   thing",
        push: true,
      });
      const branch = "harness/success/mend-it";
      expect(report.error).toBeUndefined();
      expect(report).toMatchObject({ status: "success", exitCode: 0, branch, sandbox: { type: name, kept: false } });
      expect(report.nodes[0]).toMatchObject({ status: "success", output: "mended", agent: { costUsd: 0.25 } });
      const prUrl = expect.stringMatching(new RegExp(`^${bench.github.env.GITHUB_SERVER_URL}/acme/widgets/pull/\\d+$`));
      expect(report.pushResult).toEqual({ pushed: true, state: "ok", draft: false, prUrl, tree: report.tree });
      const pull = bench.github.pulls.find(({ head }) => head === branch);
      expect(pull).toMatchObject({ title: "[harness] mend the thing", base: "trunk", draft: false });
      expect(pull?.body).toMatch(/^Blueprint: Mend It!\nBranch: harness\/success\/mend-it\nRun: success\n/);
      expect(pull?.body).toContain("| `green` | `test` | ✔ passed |");
      expect(report.tree).toMatch(/^[0-9a-f]{40}$/);
      expect(remote("rev-parse", `${branch}^{tree}`)).toBe(report.tree);
      expect(remote("log", "--format=%s", `trunk..${branch}`).split("\n")).toHaveLength(1);
      expect(remote("diff", "--name-only", "trunk", branch)).toBe("a.txt");
    });

    test("a gate that recovers: exit 0, and the repair is a child of the gate", async () => {
      const report = await start("recovers", [gate("echo good > a.txt")], { push: true });
      expect(report).toMatchObject({ status: "success", exitCode: 0, pushResult: { pushed: true, state: "ok" } });
      expect(report.nodes).toMatchObject([{ rounds: 1, children: [{ kind: "agent", status: "success" }] }]);
      expect(remote("show", `${report.branch}:a.txt`)).toBe("good");
      expect(remote("log", "--format=%B", `trunk..${report.branch}`).trimEnd()).toBe(
        "[harness] mend it\n\nBlueprint: recovers\nRun: recovers",
      );
    });

    test("a gate that does not: exit 1 after two repairs, the patch is there, nothing is pushed", async () => {
      const report = await start("stays-red", [gate("echo x >> b.txt")], { push: true });
      expect(report).toMatchObject({
        status: "failed",
        exitCode: 1,
        pushResult: { pushed: false, state: "not_allowed" },
      });
      expect(report.nodes[0]).toMatchObject({ status: "failure", rounds: 2 });
      expect(file("stays-red", "changes.patch").match(/^\+x$/gm)).toHaveLength(2);
      expect(remote("for-each-ref", `refs/heads/${report.branch}`)).toBe("");
    });

    test("a protected path that was touched: the gate is red, and says which", async () => {
      const report = await start("protected", [gate("echo good > a.txt; echo x > sub/b.txt")], { push: true });
      expect(report).toMatchObject({ status: "failed", exitCode: 1, pushResult: { state: "not_allowed" } });
      expect(report.nodes[0]?.checks?.find(({ id }) => id === "protected-paths")?.output).toContain("sub/b.txt");
    });

    test("[S4-AC-16] [S4-TEST-push-failure] [S4-STATE-push-failed] a push that is refused is a result, and the run stays a success", async () => {
      const report = await start("push-refused", [EDIT], { push: true });
      expect(report).toMatchObject({ status: "success", exitCode: 4, nodes: [{ status: "success" }] });
      expect(report.pushResult).toMatchObject({
        pushed: false,
        state: "push_failed",
        error: expect.stringMatching(/^git push failed: .*pre-receive hook declined/),
      });
      expect(report.pushResult?.prUrl).toBeUndefined();
    });

    test("[S4-STATE-pr-failed] a pull request that is refused is a result; the branch is there", async () => {
      const report = await start("pr-refused", [EDIT], { push: true });
      expect(report).toMatchObject({
        status: "success",
        exitCode: 4,
        pushResult: { pushed: true, state: "pr_failed" },
      });
      expect(report.pushResult?.error).toMatch(/^PR creation failed: .*403: Resource not accessible/);
      expect(report.pushResult?.prUrl).toBeUndefined();
      expect(remote("rev-parse", `${report.branch}^{tree}`)).toBe(report.tree);
    });

    test("[S4-AC-21] [S4-TEST-push-no-token] [S4-STATE-no-token] without a token nothing is pushed, and the run is a success", async () => {
      const report = await start("no-token", [EDIT], { push: true, githubToken: "" });
      expect(report).toMatchObject({ status: "success", exitCode: 4 });
      expect(report.pushResult).toEqual({ pushed: false, error: "GITHUB_TOKEN required for push", state: "no_token" });
      expect(remote("for-each-ref", `refs/heads/${report.branch}`)).toBe("");
    });

    test("[S4-AC-16] a token that the remote refuses is a result, and is shown nowhere", async () => {
      const githubToken = "ghp_wrongwrongwrongwrong";
      const report = await start("token-refused", [EDIT], { push: true, githubToken });
      expect(report).toMatchObject({ status: "success", exitCode: 4, nodes: [{ status: "success" }] });
      expect(report.pushResult).toMatchObject({
        ...{ pushed: false, state: "push_failed" },
        error: expect.stringMatching(/^git push failed: ./),
      });
      expect(remote("for-each-ref", `refs/heads/${report.branch}`)).toBe("");
      for (const name of readdirSync(join(out(), "token-refused"), { recursive: true }) as string[]) {
        const path = join(out(), "token-refused", name);
        if (statSync(path).isFile())
          expect([name, readFileSync(path, "utf8").includes(githubToken)]).toEqual([name, false]);
      }
    });

    test("pushed later, when the sandbox is gone: exactly the files of the report", async () => {
      const report = await start("later", [
        EDIT,
        command("more", "mkdir -p deep/er; echo x > deep/er/b.txt; rm -f sub/b.txt"),
      ]);
      expect(report).toMatchObject({ status: "success", sandbox: { kept: false } });
      const result = await pushRunAgain("later", { githubToken: bench.github.env.GITHUB_TOKEN });
      expect(result).toMatchObject({ pushed: true, state: "ok" });
      expect(report.tree).toMatch(/^[0-9a-f]{40}$/);
      expect(remote("rev-parse", `${report.branch}^{tree}`)).toBe(report.tree);
      expect(remote("log", "--format=%s", `trunk..${report.branch}`)).toBe("[harness] mend it");
    });

    test("a pull request that is open already is used", async () => {
      const head = "harness/existing/existing";
      const number = 1000;
      bench.github.pulls.push({ number, head, title: "x", body: "", base: "trunk", draft: false, state: "open" });
      const report = await start("existing", [EDIT], { push: true });
      expect(report.pushResult).toMatchObject({ pushed: true, existing: true, state: "ok" });
      expect(report.pushResult?.prUrl).toMatch(/\/pull\/1000$/);
      expect(bench.github.pulls.filter((pull) => pull.head === head)).toHaveLength(1);
    });

    test("no changes: exit 6, and nothing is pushed", async () => {
      const expects = blueprint("idle", [command("look", "cat a.txt")], { expectsChanges: true });
      const report = await start("idle", [], { push: true, blueprint: expects });
      expect(report).toMatchObject({ status: "no_changes", exitCode: 6 });
      expect(report.pushResult).toEqual({ pushed: false, state: "no_changes" });
      expect(remote("for-each-ref", `refs/heads/${report.branch}`)).toBe("");
    });

    test("a limit that is reached: exit 5, the patch is kept, and a draft by request", async () => {
      const reporter: Reporter = { event: ({ type }) => (type === "sandbox.creating" ? delay(2_500) : undefined) };
      const report = await start("limit", [command("work", "echo some > a.txt; sleep 60"), command("never", "true")], {
        // From the call to the report: opening the sandbox and saving the work belong to it. Twice as long as the one took is set
        // aside for the other: without the delay that is too little on a busy machine.
        limits: { wall: 20_000 },
        reporter,
        pushOn: "limit",
        push: true,
      });
      expect(report).toMatchObject({ status: "limit", exitCode: 5, limitsHit: [{ limit: "wall" }] });
      expect(file("limit", "changes.patch")).toContain("+some");
      expect(report.pushResult).toMatchObject({ pushed: true, draft: true });
      expect(bench.github.pulls.find(({ head }) => head === report.branch)?.body).toContain("**Incomplete**");
    });

    test("SIGINT: exit 130, a report and the patch; resume goes on in the sandbox that was kept", async () => {
      const going = await startApart("interrupted");
      going.child.kill("SIGINT");
      expect((await going.ended).code).toBe(130);
      const saved = JSON.parse(file("interrupted", "report.json")) as unknown;
      expect(saved).toMatchObject({ status: "cancelled", exitCode: 130, sandbox: { kept: true } });
      expect(file("interrupted", "changes.patch")).toContain("+half");
      await goOn("interrupted");
    });

    test.each(["failed", "never"])("kill -9 with --keep %s: resume loses nothing that was done", async (keep) => {
      const id = `killed-${keep}`;
      const going = await startApart(id, "--keep", keep);
      going.child.kill("SIGKILL");
      await going.ended;
      expect((await listRuns()).find(({ runId }) => runId === id)).toMatchObject({ state: "interrupted" });
      await goOn(id);
      expect(file(id, "changes.patch").match(/^\+half$/gm)).toHaveLength(1);
      const seqs = file(id, "events.jsonl")
        .trimEnd()
        .split("\n")
        .map((line) => (JSON.parse(line) as { seq: number }).seq);
      expect(seqs).toEqual(seqs.map((_, at) => at + 1));
    });

    test("a sandbox that is lost: exit 3, a report with the work of the last checkpoint; resume goes on", async () => {
      let sandbox = { id: "", workDir: "" };
      let severed: Promise<void> | undefined;
      const reporter: Reporter = {
        event(event) {
          if (event.type === "sandbox.ready") sandbox = { id: event.sandboxId, workDir: event.workDir };
          if (event.type === "node.output" && event.nodeId === "wait") severed ??= backend.sever(sandbox);
        },
      };
      const report = await start("lost", WAIT, { reporter, keep: "failed" });
      await severed;
      expect(report).toMatchObject({ status: "error", exitCode: 3, nodes: [{ status: "success" }, { id: "wait" }] });
      expect(file("lost", "events.jsonl")).toContain('"type":"sandbox.lost"');
      expect(file("lost", "changes.patch")).toContain("+1");
      await goOn("lost");
    });
  });

  test(`nothing is left behind of the runs on ${name}, and nothing at all once they are removed`, async () => {
    // A run whose time is over returns on time, and its sandbox may still be on its way out then.
    await expect.poll(() => listSandboxes()).toEqual([]);
    expect((await gcRuns({ olderThan: 0 })).left).toEqual([]);
    // What a workspace is copied from is a cache; it belongs to no run.
    const refs = git(bench.repo, "for-each-ref", "--format=%(refname)", "refs/glovebox", "refs/heads/harness").split(
      "\n",
    );
    const unpushed = refs.filter((ref) => ref !== "" && !ref.startsWith("refs/glovebox/bases/") && !isPushed(ref));
    expect([await backend.left(), await listSnapshots(), unpushed]).toEqual([[], [], []]);
    expect(git(bench.repo, "worktree", "list").split("\n")).toHaveLength(1);
  });
}

/** The fake agents are a part of the repository: then every backend has them. */
function addFakeAgent(repo: string): void {
  mkdirSync(join(repo, ".fake"));
  copyFileSync(AGENT, join(repo, ".fake", "claude"));
  git(repo, "add", "--all");
  git(repo, "commit", "--quiet", "-m", "agents");
}

/** The remote takes no branch that is called `push-refused`, and GitHub opens no pull request for `pr-refused`. */
function refuseSome({ github }: HarnessBench): void {
  const hook =
    '#!/bin/sh\nwhile read -r _ _ ref; do case $ref in *push-refused*) echo "no way" >&2; exit 1; esac; done\n';
  writeFileSync(join(github.remote, "hooks", "pre-receive"), hook, { mode: 0o755 });
  github.refuse = (method, _, body) =>
    method === "POST" && body.includes("harness/pr-refused/")
      ? { status: 403, message: "Resource not accessible by token" }
      : undefined;
}
