import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { it } from "vitest";
import { program } from "../support/cli.js";
import { describeUnless } from "../support/describe-unless.js";
import { namesIn, whyNoTestCluster } from "../support/kubernetes/cluster.js";
import { objectsOfSandboxes } from "../support/kubernetes/harness.js";
import { useInstalledImage } from "../support/kubernetes/installed-image.js";
import { killClient } from "../support/kubernetes/killed-client.js";
import { expectNothingLeftIn, policiesOfTasks } from "../support/kubernetes/left-of.js";
import { useKubePlace } from "../support/kubernetes/place.js";
import { expectRefused } from "../support/refused.js";
import { testWarmPool } from "./warm-pool.js";

const run = promisify(execFile);

/** What the cluster keeps of a Job that has ended, it keeps for a minute. */
const UNTIL_GONE = { timeout: 150_000, interval: 1_000 };

/**
 * Each of these waits for more than a minute. None of them disturbs the cluster, so they run at the same time, each in a namespace of its own. They poll
 * with the `expect` that they are given: the imported one polls for one test at a time.
 */
describeUnless(whyNoTestCluster(), "what takes a real cluster a minute", { concurrent: true }, () => {
  const place = useKubePlace("long-waits");
  const image = useInstalledImage("team/plain");

  it("resources that no node has are reported with the scheduler's reason, and nothing is left", async () => {
    await using own = await place.beside("unschedulable");
    const call = own.open({ limits: { memory: 2 ** 50 }, operationTimeout: 120_000 });
    await expectRefused(call, "unavailable", "Insufficient memory");
    await expectNothingLeftIn(own.namespace);
  });

  it("a pod is gone, with its Job, after the lease of a client that was killed", async ({ expect }) => {
    await using own = await place.beside("client");
    const options = own.options();
    options.kubernetes = { ...options.kubernetes, lease: 10_000 };
    await killClient("hold-kubernetes.mjs", options, own.home);
    await expect.poll(() => namesIn(own.namespace, "apis/batch/v1/jobs"), UNTIL_GONE).toEqual([]);
  });

  it("a task leaves nothing after the lease of a manager that was killed", async ({ expect }) => {
    await using own = await place.beside("manager");
    const { kubernetes } = own.options();
    const resources = { cpu: "100m", memory: "64Mi" };
    const task = { image: image(), kubernetes: { ...kubernetes, resources, lease: 10_000 } };
    const ids = JSON.parse(await killClient("hold-kubernetes-task.mjs", task, own.home)) as string[];
    // Nobody here does anything: the guests end at the end of the lease, and the cluster removes the rest a minute later.
    const all = async (): Promise<string[]> => [
      ...(await policiesOfTasks(own.namespace)),
      ...(await namesIn(own.namespace, "apis/batch/v1/jobs")),
      ...(await namesIn(own.namespace, "api/v1/pods")),
    ];
    expect((await all()).length).toBeGreaterThan(0);
    await expect.poll(all, UNTIL_GONE).toEqual([]);
    const env = { ...process.env, GLOVEBOX_HOME: own.home };
    const { stdout } = await run(process.execPath, [program, "reap", "--backend", "kubernetes", "--json"], { env });
    expect((JSON.parse(stdout) as { removed: string[] }).removed.sort()).toEqual(ids.sort());
    expect(readdirSync(join(own.home, "sandboxes"))).toEqual([]);
    expect(await objectsOfSandboxes(own.namespace, true)).toEqual([]);
  });

  testWarmPool(place);
});
