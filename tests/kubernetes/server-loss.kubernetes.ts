import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Sandbox } from "../../src/sandbox/types.js";
import { describeUnless } from "../support/describe-unless.js";
import { api, callApi, control, whyNoTestCluster } from "../support/kubernetes/cluster.js";
import { podOf } from "../support/kubernetes/harness.js";
import { useKubePlace } from "../support/kubernetes/place.js";

const COUNT = 50;
const AT_ONCE = 10;

/** Runs many commands, some at a time, each of which leaves a line in a file; calls `midway` when a third of them has ended. */
async function runMany(sandbox: Sandbox, midway: () => Promise<void>): Promise<string[]> {
  const results: string[] = [];
  let next = 0;
  let isMidway: Promise<void> | undefined;
  const one = async (): Promise<void> => {
    while (next < COUNT) {
      const number = next++;
      const script = `echo ${number} >> lines; printf 'a%s' ${number}; sleep 0.3; printf 'b%s' ${number}; exit ${number % 7}`;
      const { stdout, exitCode } = await sandbox.shell(script);
      results[number] = `${stdout} ${exitCode}`;
      if (results.filter(Boolean).length >= COUNT / 3) isMidway ??= midway();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  await isMidway;
  return results;
}

const expected = Array.from({ length: COUNT }, (_, number) => `a${number}b${number} ${number % 7}`);

async function linesIn(sandbox: Sandbox): Promise<number[]> {
  const text = (await sandbox.readFile("lines")) ?? "";
  return text
    .trim()
    .split("\n")
    .map(Number)
    .toSorted((a, b) => a - b);
}

const serverAnswers = async (): Promise<boolean> =>
  (await callApi("GET", "/readyz").catch(() => undefined))?.status === 200;

describeUnless(whyNoTestCluster(), "a way to a pod that breaks", {}, () => {
  const place = useKubePlace("server-loss");

  it("loses and doubles nothing of 50 commands when the API server is killed and starts again", async () => {
    await using sandbox = await place.open();
    const results = await runMany(sandbox, async () => {
      await control("kill", { name: "kube-apiserver" });
      await delay(1_000);
      await control("start", { name: "kube-apiserver" });
      await expect.poll(serverAnswers, { timeout: 120_000 }).toBe(true);
    });
    expect(results).toEqual(expected);
    expect(await linesIn(sandbox)).toEqual(Array.from({ length: COUNT }, (_, number) => number));
  });

  it("loses and doubles nothing when a load balancer cuts all connections, again and again", async () => {
    await using sandbox = await place.open();
    const results = await runMany(sandbox, async () => {
      for (let cut = 0; cut < 3; cut++) {
        await control("path", { mode: "reset" });
        await control("path", { mode: "pass" });
        await delay(300);
      }
    });
    expect(results).toEqual(expected);
    expect(await linesIn(sandbox)).toEqual(Array.from({ length: COUNT }, (_, number) => number));
  });

  it("survives that nothing moves on the way for longer than a connection is waited for", async () => {
    await using sandbox = await place.open({ kubernetes: { lease: 120_000 } });
    const running = sandbox.shell("for i in 1 2 3 4 5; do echo $i; sleep 2; done");
    await control("path", { mode: "stall" });
    // The silence after which a connection is given up is 30 s.
    await delay(40_000);
    await control("path", { mode: "pass" });
    expect(await running).toMatchObject({ stdout: "1\n2\n3\n4\n5\n", exitCode: 0 });
  });

  it("goes on when the kubelet is killed and starts again", async () => {
    await using sandbox = await place.open();
    const { spec } = await api(
      "GET",
      `/api/v1/namespaces/${place.namespace}/pods/${await podOf(place.namespace, sandbox)}`,
    );
    const results = await runMany(sandbox, async () => {
      await control("kill", { name: `${spec.nodeName}-kubelet` });
      await delay(500);
      await control("start", { name: `${spec.nodeName}-kubelet` });
    });
    expect(results).toEqual(expected);
  });
});
