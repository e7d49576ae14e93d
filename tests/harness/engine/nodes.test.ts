import { describe, expect, test } from "vitest";
import { SandboxError } from "../../../contracts/errors.js";
import type { NodeSpec, RunEventBody } from "../../../src/harness/types.js";
import { command, deterministic, preflight } from "../../../src/harness.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { openSandbox } from "../../../src/sandbox.js";
import { of, only, runInSandbox, told, useSandbox } from "../../support/harness/engine-run.js";

const place = useSandbox();

const touch = (id: string, more: Partial<NodeSpec> = {}): NodeSpec =>
  ({ kind: "command", id, run: ["true"], ...more }) as NodeSpec;

describe("nodes", () => {
  test("run one after the other, see what came before, and the first failure ends the run", async () => {
    const spec = of(
      { kind: "command", id: "one", run: ["printf", "a b"] },
      { kind: "deterministic", id: "two", run: ["printf", "<%s>", "{{ nodes.one.output }}", "{{ intent }}"] },
      { kind: "command", id: "three", shell: 'echo "$X" >&2; exit 3', env: { X: "$(id) {{ nodes.two.output }}" } },
      touch("four"),
    );
    const { outcome, events } = await runInSandbox(place.sandbox, spec);
    expect(outcome).toMatchObject({ status: "failed", endedBy: "three", error: { code: "command_failed" } });
    expect(told(outcome)).toEqual(["one success", "two success", "three failure"]);
    expect(outcome.nodes[1]?.output).toBe("<a b><mend it>");
    expect(outcome.nodes[2]).toMatchObject({
      exitCode: 3,
      output: "$(id) <a b><mend it>\n",
      command: 'echo "$X" >&2; exit 3',
    });
    const order = events.map((event) => ("nodeId" in event ? `${event.type} ${event.nodeId}` : event.type));
    // Output may come in pieces.
    expect([...new Set(order)].slice(0, 3)).toEqual(["node.started one", "node.output one", "node.finished one"]);
  });

  test("run in the order of their needs, and a skipped need skips what needs it", async () => {
    const spec = of(
      touch("c", { needs: ["b"] }),
      touch("a", { when: "1 > 2" }),
      touch("b", { needs: ["a"] }),
      touch("d"),
    );
    const { outcome, events } = await runInSandbox(place.sandbox, spec);
    expect(told(outcome)).toEqual(["a skipped", "b skipped", "c skipped", "d success"]);
    expect(outcome.status).toBe("success");
    expect(only(events, "node.skipped").map(({ reason }) => reason)).toEqual([
      "1 > 2 is false",
      "it needs a, which was skipped",
      "it needs b, which was skipped",
    ]);
  });

  test("may fail where the blueprint says so, and a condition can ask for it", async () => {
    const spec = of(
      touch("red", { run: ["false"], continueOnError: true } as Partial<NodeSpec>),
      touch("after", { when: "nodes.red.status == 'failure' && !changed('a.txt')" }),
      touch("never", { when: "nodes.red.exitCode == 0" }),
    );
    const { outcome } = await runInSandbox(place.sandbox, spec);
    expect(told(outcome)).toEqual(["red failure", "after success", "never skipped"]);
    expect(outcome.nodes[0]?.tolerated).toBe(true);
    expect(outcome.status).toBe("success");
  });

  test("in code run functions, which see the run; one that throws is a failure with a report", async () => {
    const seen: string[] = [];
    const spec = of(
      preflight({ name: "Look first", check: (context) => ({ output: `in ${context.workDir}` }) }),
      deterministic({
        name: "act",
        exec: async ({ results }, inside) => {
          seen.push(results["Look-first"]?.output ?? "");
          await inside.writeFile("made", "x");
          return undefined;
        },
      }),
      command({ name: "skipped", skip: () => true, run: ["false"] }),
      command({
        name: "throws",
        exec: () => {
          throw new Error("no more");
        },
      }),
    );
    const { outcome, events } = await runInSandbox(place.sandbox, spec);
    expect(seen).toEqual([`in ${place.sandbox.workDir}`]);
    expect(told(outcome)).toEqual(["Look-first success", "act success", "skipped skipped", "throws failure"]);
    expect(outcome.nodes[3]?.error).toEqual({ code: "node_threw", message: "no more", retryable: false });
    expect(only(events, "node.finished").at(-1)?.result.status).toBe("failure");
    expect(outcome.status).toBe("failed");
    await place.sandbox.deleteFile("made");
  });

  test("that take too long have failed, and that is no limit of the run", async () => {
    const { outcome } = await runInSandbox(
      place.sandbox,
      of(touch("slow", { run: ["sleep", "60"], timeout: "300ms" } as Partial<NodeSpec>)),
    );
    expect(outcome).toMatchObject({ status: "failed", error: { code: "timed_out" }, limitsHit: [] });
  });

  test("are ended at the time of the run, also a function that does not listen", async () => {
    const slow: NodeSpec[] = [
      touch("sleep", { run: ["sleep", "60"] } as Partial<NodeSpec>),
      { kind: "command", id: "deaf", exec: () => new Promise(() => undefined) },
    ];
    for (const node of slow) {
      const { outcome } = await runInSandbox(place.sandbox, of(node, touch("after")), { limits: { wall: 400 } });
      expect(outcome).toMatchObject({
        status: "limit",
        endedBy: node.id,
        limitsHit: [{ limit: "wall", allowed: 400 }],
      });
      expect(outcome.nodes).toHaveLength(1);
    }
  });

  test("whose time is over before the first of them, or while the last is saved, name that limit", async () => {
    const limit = [{ limit: "wall", nodeId: "after", allowed: 400 }];
    const setup = { ...of(touch("after")), sandbox: { setup: [["sleep", "60"]] } };
    const early = await runInSandbox(place.sandbox, setup, { limits: { wall: 400 } });
    expect(early.outcome).toMatchObject({ status: "limit", limitsHit: limit });
    const late = await runInSandbox(place.sandbox, of(touch("after")), {
      limits: { wall: 400 },
      checkpoint: () => new Promise(() => undefined),
    });
    expect(late.outcome).toMatchObject({ status: "limit", limitsHit: limit });
    expect(only(late.events, "limit.hit")).toHaveLength(1);
  });

  test("get the secrets that they name and no others, and what they print of them is hidden, also across pieces", async () => {
    const secrets = { DEPLOY_TOKEN: "tok-1234567890", OTHER_TOKEN: "other-0987654321" };
    const script = 'printf %s "$DEPLOY_TOKEN" | (head -c 9; sleep 0.2; cat); env | grep -c OTHER_TOKEN';
    const spec = of({ kind: "command", id: "print", shell: script, secrets: ["DEPLOY_TOKEN"], continueOnError: true });
    const { outcome, events } = await runInSandbox(place.sandbox, spec, { secrets });
    expect(outcome.nodes[0]?.output).toBe("[REDACTED]0\n");
    expect(JSON.stringify([outcome, events])).not.toContain("tok-12");
  });

  test("that print much keep head and tail in the result, and all of it in the events", async () => {
    let length = 0;
    const spec = of({ kind: "command", id: "much", shell: "head -c 20000000 /dev/zero | tr '\\0' x; echo END" });
    const { outcome } = await runInSandbox(place.sandbox, spec, {
      onEvent: (event: RunEventBody) => {
        if (event.type === "node.output") length += event.text.length;
      },
    });
    const [node] = outcome.nodes;
    expect(length).toBe(20_000_004);
    expect(node?.outputTruncated).toBe(true);
    expect(node?.output.length).toBeLessThan(52_000);
    expect(node?.output.endsWith("xEND\n")).toBe(true);
  });

  test("can be begun with and stopped after; what an earlier run did is taken over", async () => {
    const spec = of(touch("a"), touch("b"), touch("c"), touch("d"));
    const first = await runInSandbox(place.sandbox, spec, { until: "b" });
    expect(told(first.outcome)).toEqual(["a success", "b success"]);
    const saved: string[] = [];
    const second = await runInSandbox(place.sandbox, spec, {
      startAt: "c",
      context: { results: { ...first.context.results } },
      checkpoint: async ({ node, index }) => void saved.push(`${index} ${node.id}`),
    });
    expect(second.outcome.nodes.map(({ id, reused }) => `${id} ${reused === true}`)).toEqual([
      "a true",
      "b true",
      "c false",
      "d false",
    ]);
    expect(saved).toEqual(["2 c", "3 d"]);
    await expect(runInSandbox(place.sandbox, spec, { startAt: "x" })).rejects.toThrow(
      'Invalid startAt "x": the blueprint test has no such node',
    );
    await expect(runInSandbox(place.sandbox, spec, { startAt: "d", until: "a" })).rejects.toThrow("comes before");
  });

  test("go on when a checkpoint or a listener fails, with a warning", async () => {
    const { outcome } = await runInSandbox(place.sandbox, of(touch("a"), touch("b")), {
      checkpoint: () => Promise.reject(new Error("disk full")),
      onEvent: () => {
        throw new Error("nobody listens");
      },
    });
    expect(told(outcome)).toEqual(["a success", "b success"]);
    expect(outcome.warnings).toEqual(
      expect.arrayContaining([expect.stringContaining("disk full"), expect.stringContaining("nobody listens")]),
    );
  });

  test("a template without a value in this run is a failure that says which", async () => {
    const { outcome } = await runInSandbox(
      place.sandbox,
      of(touch("a", { run: ["echo", "{{ spec }}"] } as Partial<NodeSpec>)),
    );
    expect(outcome).toMatchObject({
      status: "failed",
      error: { code: "invalid_argument", message: "{{ spec }} has no value in this run" },
    });
  });

  test("a sandbox that is lost ends the run with an error and an event", async () => {
    const doomed = await openSandbox({ backend: "local" });
    const spec = of(
      { kind: "command", id: "a", exec: () => doomed.teardown().then(() => undefined) },
      touch("b"),
      touch("c"),
    );
    const { outcome, events } = await runInSandbox(doomed, spec);
    expect(outcome).toMatchObject({ status: "error", sandboxLost: true, endedBy: "b", error: { code: "closed" } });
    expect(only(events, "sandbox.lost")).toHaveLength(1);
  });

  test("infrastructure that is not available is tried again; a failing command never is", async () => {
    let calls = 0;
    const flaky = new Proxy(place.sandbox, {
      get(target, key) {
        if (key !== "exec") return Reflect.get(target, key) as unknown;
        return (options: Parameters<Sandbox["exec"]>[0]) => {
          calls += 1;
          return calls === 1 ? Promise.reject(new SandboxError("unavailable", "try later")) : target.exec(options);
        };
      },
    });
    const { outcome } = await runInSandbox(
      flaky,
      of(touch("a", { retry: { backoff: 1 }, run: ["false"] } as Partial<NodeSpec>)),
    );
    expect(outcome.nodes[0]).toMatchObject({ attempt: 2, status: "failure", error: { code: "command_failed" } });
    expect(calls).toBe(2);
  });
});
