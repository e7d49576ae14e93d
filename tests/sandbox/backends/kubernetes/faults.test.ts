import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { createKubernetesSandbox } from "../../../../src/sandbox/backends/kubernetes.js";
import type { Sandbox, SandboxOptions } from "../../../../src/sandbox/types.js";
import { EVERYTHING } from "../../../fakes/kubernetes/access.js";
import { FakeCluster } from "../../../fakes/kubernetes/cluster.js";
import { describeUnless } from "../../../support/describe-unless.js";
import { whyNoFakeCluster } from "../../../support/kubernetes/fake-place.js";
import { expectRefused, refusalOf } from "../../../support/refused.js";
import { createScratch } from "../../../support/scratch.js";

const COUNT = 50;
const expected = Array.from({ length: COUNT }, (_, number) => `a${number}b${number} ${number % 7}`);

describeUnless(whyNoFakeCluster(), "what can happen to a cluster, on one of ours", {}, () => {
  const scratch = createScratch();
  let cluster: FakeCluster;
  beforeAll(async () => {
    cluster = await FakeCluster.start(join(scratch.path, "cluster"));
    // What is made once for a namespace.
    await (await open()).teardown();
  });
  afterEach(async () => {
    Object.assign(cluster.habits, { hasV5: true, mostPods: Number.POSITIVE_INFINITY });
    await expect.poll(() => cluster.objectsOfSandboxes()).toEqual([]);
  });
  afterAll(async () => {
    await cluster.stop();
    scratch.remove();
  });
  const open = (own: SandboxOptions["kubernetes"] = {}, opts: SandboxOptions = {}): Promise<Sandbox> =>
    createKubernetesSandbox({
      ...{ image: "glovebox-test/debian:1", operationTimeout: 30_000 },
      ...opts,
      kubernetes: { kubeconfig: cluster.kubeconfig, lease: 20_000, ...own },
    });

  /** Runs many commands, some at a time, each of which leaves a line in a file; calls `midway` when a third of them has ended. */
  const runMany = async (sandbox: Sandbox, midway: () => Promise<void>): Promise<string[]> => {
    const results: string[] = [];
    let next = 0;
    let isMidway: Promise<void> | undefined;
    const one = async (): Promise<void> => {
      while (next < COUNT) {
        const number = next++;
        const script = `echo ${number} >> lines; printf 'a%s' ${number}; sleep 0.1; printf 'b%s' ${number}; exit ${number % 7}`;
        const { stdout, exitCode } = await sandbox.shell(script);
        results[number] = `${stdout} ${exitCode}`;
        if (results.filter(Boolean).length >= COUNT / 3) isMidway ??= midway();
      }
    };
    await Promise.all(Array.from({ length: 10 }, one));
    await isMidway;
    return results;
  };
  const linesIn = async (sandbox: Sandbox): Promise<number[]> => {
    const text = (await sandbox.readFile("lines")) ?? "";
    return text
      .trim()
      .split("\n")
      .map(Number)
      .toSorted((a, b) => a - b);
  };

  it.each([
    ["5", true],
    ["4", false],
  ])("loses and doubles nothing by version %s when the API server is killed and starts again", async (_, hasV5) => {
    cluster.habits.hasV5 = hasV5;
    await using sandbox = await open();
    const results = await runMany(sandbox, async () => {
      await cluster.killServer();
      await delay(300);
      await cluster.startServer();
    });
    expect(results).toEqual(expected);
    expect(await linesIn(sandbox)).toEqual(Array.from({ length: COUNT }, (_each, number) => number));
  });

  it("loses and doubles nothing when connections are closed in good order, without a status", async () => {
    await using sandbox = await open();
    const results = await runMany(sandbox, async () => {
      for (let cut = 0; cut < 5; cut++) {
        for (const session of cluster.api.sessions) session.closeWithoutStatus();
        await delay(100);
      }
    });
    expect(results).toEqual(expected);
    expect(await linesIn(sandbox)).toEqual(Array.from({ length: COUNT }, (_, number) => number));
  });

  it("keeps the deadline of a command while nothing moves on the way", async () => {
    await using sandbox = await open();
    cluster.stall(true);
    try {
      const started = performance.now();
      const outcome = await sandbox.exec({ argv: ["sleep", "60"], timeout: 1_000 }).catch((error: unknown) => error);
      expect(outcome).toMatchObject({ code: "backend_lost" });
      // Two seconds after the deadline at most.
      expect(performance.now() - started).toBeLessThan(3_000);
    } finally {
      cluster.stall(false);
    }
    expect(await sandbox.shell("echo here")).toMatchObject({ stdout: "here\n" });
  });

  it("notices in a bounded time that nothing moves any more", { timeout: 90_000 }, async () => {
    const sandbox = await open({ lease: 10_000 });
    const running = refusalOf(sandbox.shell("sleep 600", { timeout: 80_000 }));
    cluster.stall(true);
    try {
      expect(await running).toMatchObject({ code: "backend_lost" });
    } finally {
      cluster.stall(false);
    }
    // The guest has ended itself by then.
    await expect.poll(() => cluster.podOf(sandbox.id)["status"].phase, { timeout: 30_000 }).toBe("Succeeded");
    await sandbox.teardown();
  });

  it("makes six requests at most for a sandbox", async () => {
    cluster.api.requests.length = 0;
    const sandbox = await open();
    await sandbox.shell("true");
    await sandbox.teardown();
    expect(cluster.api.requests.length).toBeLessThanOrEqual(6);
  });

  it("leaves the end of a ttl to the process that has the sandbox", async () => {
    await using sandbox = await open({}, { ttl: 60_000 });
    const job = cluster.store.list("Job").find(({ metadata: { name } }) => name === `glovebox-${sandbox.id}`);
    expect(job?.["spec"].activeDeadlineSeconds).toBeGreaterThanOrEqual(75);
  });

  it("ends a fork no later than what it was forked from", async () => {
    await using sandbox = await open({}, { ttl: 600_000 });
    await delay(5_100);
    const [fork] = await sandbox.fork({ count: 1 });
    await using _ = fork;
    const endOf = (id: string | undefined): number => {
      const job = cluster.store.list("Job").find(({ metadata: { name } }) => name === `glovebox-${id}`);
      return Date.parse(job?.metadata.creationTimestamp ?? "") + 1_000 * job?.["spec"].activeDeadlineSeconds;
    };
    // Both are whole seconds, and a Job is made a little later than its deadline is known.
    expect(endOf(fork?.id) - endOf(sandbox.id)).toBeLessThan(4_000);
  });

  it("reports a quota, a missing right and a token that is too old, and leaves nothing", async () => {
    cluster.habits.mostPods = 0;
    await expectRefused(open(), "limit_exceeded", "exceeded quota");
    cluster.habits.mostPods = Number.POSITIVE_INFINITY;
    const reader = cluster.addUser("reader", [{ groups: ["*"], resources: ["*"], verbs: ["get", "list", "watch"] }]);
    await expectRefused(open({ kubeconfig: reader.kubeconfig }), "permission_denied", "reader");
    const late = cluster.addUser("late", EVERYTHING);
    late.expire();
    await expectRefused(open({ kubeconfig: late.kubeconfig }), "unauthenticated");
  });

  it("names why a pod has ended: evicted, preempted, or killed for its memory", async () => {
    const evicted = await open();
    const first = refusalOf(evicted.shell("sleep 600"));
    cluster.kubelet.evict(cluster.podOf(evicted.id), "Evicted", "The node was low on resource: memory.");
    expect(await first).toMatchObject({ code: "backend_lost", message: expect.stringContaining("Evicted") as unknown });
    await evicted.teardown();

    const preempted = await open();
    const third = refusalOf(preempted.shell("sleep 600"));
    const message = "Preempted by default/urgent on node node-1";
    cluster.kubelet.event(cluster.podOf(preempted.id), "Normal", "Preempted", message);
    await cluster.deletePod(preempted.id);
    expect(await third).toMatchObject({ code: "backend_lost", message: expect.stringContaining(message) as unknown });
    await preempted.teardown();

    const killed = await open();
    const second = refusalOf(killed.shell("sleep 600"));
    cluster.kubelet.killForMemory(cluster.podOf(killed.id));
    expect(await second).toMatchObject({
      code: "backend_lost",
      message: expect.stringContaining("OOMKilled") as unknown,
      cause: { code: "limit_exceeded" },
    });
    await killed.teardown();
  });
});
