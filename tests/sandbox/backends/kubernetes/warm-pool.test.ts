import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import type { KubernetesOptions } from "../../../../src/sandbox/backends/kubernetes/kubernetes-options.js";
import { probeKubernetes } from "../../../../src/sandbox/backends/kubernetes/probe.js";
import { createKubernetesSandbox, kubernetes } from "../../../../src/sandbox/backends/kubernetes.js";
import type { Sandbox, SandboxOptions } from "../../../../src/sandbox/types.js";
import { openSandbox, removeSandbox } from "../../../../src/sandbox.js";
import type { Rule } from "../../../fakes/kubernetes/access.js";
import { FakeCluster } from "../../../fakes/kubernetes/cluster.js";
import type { Stored } from "../../../fakes/kubernetes/store.js";
import { describeUnless } from "../../../support/describe-unless.js";
import { withEnv } from "../../../support/environment.js";
import type { AgentSandbox } from "../../../support/kubernetes/agent-sandbox.js";
import { whyNoFakeCluster } from "../../../support/kubernetes/fake-place.js";
import { expectRefused } from "../../../support/refused.js";
import { createScratch } from "../../../support/scratch.js";

const POOL = "ready";
const image = "glovebox-test/debian:1";

describeUnless(whyNoFakeCluster(), "pods of a warm pool, on a cluster of ours", {}, () => {
  const scratch = createScratch();
  let cluster: FakeCluster;
  let controller: AgentSandbox;
  const options = (own: KubernetesOptions = {}, opts: SandboxOptions = {}): SandboxOptions => ({
    ...{ image, operationTimeout: 30_000, ...opts },
    kubernetes: { kubeconfig: cluster.kubeconfig, lease: 10_000, warmPool: POOL, ...own },
  });
  const warnings: string[] = [];
  const open = (own: KubernetesOptions = {}, opts: SandboxOptions = {}): Promise<Sandbox> =>
    createKubernetesSandbox(
      options(own, { ...opts, onEvent: (event) => event.type === "warning" && warnings.push(event.message ?? "") }),
    );
  const list = (kind: string): Stored[] => cluster.store.list(kind);
  const jobs = (): string[] => list("Job").map(({ metadata }) => metadata.name);
  const claimOf = ({ id }: Sandbox): Stored | undefined =>
    cluster.store.find("SandboxClaim", "default", `glovebox-${id}`);
  const podOf = (sandbox: Sandbox): Stored => {
    const name = claimOf(sandbox)?.["status"].sandbox.name as string;
    return cluster.store.find("Pod", "default", name + controller.podSuffix) as Stored;
  };
  const readyOnes = (): number => list("SandboxWarmPool")[0]?.["status"]?.readyReplicas ?? 0;
  const change = (kind: string, edit: (copy: Stored) => void): void => {
    for (const each of list(kind)) cluster.store.update(each, edit);
  };
  const finding = async (given: SandboxOptions): Promise<Record<string, string>> => {
    const found = (await probeKubernetes({ options: given })).find(({ name }) => name === "warm pool");
    return found as unknown as Record<string, string>;
  };
  /** Makes a pool from what doctor prints for these options. */
  const makePool = async (
    given: SandboxOptions = options(),
    edit: (spec: Stored["spec"]) => void = () => undefined,
  ): Promise<void> => {
    const { manifest = "" } = await finding(given);
    for (const document of parseAllDocuments(manifest)) {
      const { kind, metadata, spec } = document.toJS() as Stored;
      edit(spec);
      const known = { kind, api: "extensions.agents.x-k8s.io/v1beta1", plural: "" };
      cluster.store.create(known, "default", {
        metadata: { name: metadata.name },
        spec: { ...spec, ...(spec.replicas && { replicas: 2 }) },
      });
    }
    await expect.poll(readyOnes).toBe(2);
  };
  const removePool = async (): Promise<void> => {
    const kinds = ["SandboxWarmPool", "SandboxTemplate", "Sandbox"];
    for (const kind of kinds) for (const each of list(kind)) cluster.store.remove(each);
    await expect.poll(() => list("Pod")).toEqual([]);
  };
  beforeAll(async () => {
    cluster = await FakeCluster.start(join(scratch.path, "cluster"));
    // What is made once for a namespace, and the pool's pods need.
    await (await open({ warmPool: undefined as never })).teardown();
    controller = cluster.installPools("default");
  });
  afterEach(async () => {
    warnings.length = 0;
    Object.assign(controller, { isPaused: false, podSuffix: "" });
    cluster.habits.hasWarmPools = true;
    await removePool();
    await expect.poll(() => cluster.objectsOfSandboxes()).toEqual([]);
  });
  afterAll(async () => {
    await controller[Symbol.asyncDispose]();
    await cluster.stop();
    scratch.remove();
  });

  it("opens in a pod that ran before, with six requests at most, and removes it with its claim", async () => {
    await makePool();
    const before = list("Pod").map(({ metadata }) => metadata.name);
    await (await open()).teardown();
    await expect.poll(readyOnes).toBe(2);
    cluster.api.requests.length = 0;
    const sandbox = await open({}, { env: { GREETING: "hello" } });
    const pod = podOf(sandbox).metadata.name;
    expect(await sandbox.shell('echo "$GREETING $(id -u) $(pwd)"')).toMatchObject({
      stdout: "hello 1000 /workspace\n",
    });
    await sandbox.writeFile("file", "content");
    expect(before).toHaveLength(2);
    expect(jobs()).toEqual([]);
    await sandbox.teardown();
    expect(cluster.api.requests.length).toBeLessThanOrEqual(6);
    expect(warnings).toEqual([]);
    expect(cluster.store.find("SandboxClaim", "default", `glovebox-${sandbox.id}`)).toBeUndefined();
    await expect.poll(() => list("Pod").map(({ metadata }) => metadata.name)).not.toContain(pod);
  });

  it("finds a pod that is called otherwise than its Sandbox", async () => {
    controller.podSuffix = "-pod";
    await makePool();
    await using sandbox = await open();
    expect(await sandbox.shell("echo here")).toMatchObject({ stdout: "here\n" });
    expect(jobs()).toEqual([]);
  });

  it("makes a new pod where the pool has none, with a warning", async () => {
    await makePool();
    const [first, second, third] = await Promise.all([open(), open(), open()]);
    expect(await third.shell("echo here")).toMatchObject({ stdout: "here\n" });
    expect(jobs()).toHaveLength(1);
    expect(warnings).toEqual([
      expect.stringContaining(`The warm pool "${POOL}" is passed by, a new pod is made: it has no free pod`),
    ]);
    expect(list("SandboxClaim")).toHaveLength(2);
    for (const each of [first, second, third]) await each.teardown();
  });

  it("makes a new pod where no controller answers a claim", async () => {
    await makePool();
    controller.isPaused = true;
    await using sandbox = await open();
    expect(await sandbox.shell("echo here")).toMatchObject({ stdout: "here\n" });
    expect(warnings).toEqual([expect.stringContaining("it gave no pod within 5000 ms")]);
    expect(list("SandboxClaim")).toEqual([]);
  });

  it("makes a new pod where somebody has reached the guest before, and never uses that one", async () => {
    await makePool();
    for (const pod of list("Pod")) {
      const running = cluster.kubelet.runningOf(pod.metadata.uid);
      const { child } = running?.exec(["/.glovebox/glovebox-guest", "relay", "attach"]) ?? {};
      child?.stdin.write(Buffer.alloc(40, 7).fill(0, 32));
      // The guest's answer: it has taken the token.
      await new Promise((resolve) => child?.stdout.once("data", resolve));
      child?.kill("SIGKILL");
    }
    await using sandbox = await open();
    expect(await sandbox.shell("echo here")).toMatchObject({ stdout: "here\n" });
    expect(jobs()).toEqual([`glovebox-${sandbox.id}`]);
    expect(warnings).toEqual([expect.stringContaining("belongs to somebody who reached it before")]);
    expect(list("SandboxClaim")).toEqual([]);
  });

  it("refuses a cluster without the kinds, and a pool that is not there, and leaves nothing", async () => {
    await expectRefused(open(), "not_found", `there is no SandboxWarmPool "${POOL}"`);
    expect(cluster.objectsOfSandboxes()).toEqual([]);
    cluster.habits.hasWarmPools = false;
    await expectRefused(open(), "unsupported", "the cluster has no SandboxClaim of extensions.agents.x-k8s.io/v1beta1");
    expect(jobs()).toEqual([]);
    expect(await finding(options())).toMatchObject({
      status: "limited",
      detail: expect.stringContaining("no SandboxClaim") as unknown,
    });
  });

  it.each<[string, KubernetesOptions, SandboxOptions, string]>([
    ["image", {}, { image: "glovebox-test/other:1" }, 'image is "glovebox-test/debian:1", not "glovebox-test/other:1"'],
    ["limits", {}, { limits: { memory: 2 ** 28 } }, "resources.requests.memory"],
    ["runtime", { runtimeClassName: "gvisor" }, {}, "runtimeClassName is absent"],
    ["user", { user: "2000" }, {}, "runAsUser is 1000, not 2000"],
    ["lease", { lease: 30_000 }, {}, "command"],
    ["workDir", { workDir: "/other" }, {}, "/other"],
    ["network", {}, { network: "full" }, 'label glovebox/network is "none", not "full"'],
  ])("refuses a pod with another %s than is asked for, and leaves nothing", async (_, own, opts, why) => {
    await makePool();
    const opening = open(own, opts);
    await expectRefused(opening, "unsupported", "is not what the options ask for", why);
    expect(jobs()).toEqual([]);
    await expect.poll(() => list("SandboxClaim")).toEqual([]);
    const found = await finding(options(own, opts));
    expect(found).toMatchObject({ status: "limited", detail: expect.stringContaining(why) as unknown });
    expect(parse(found["manifest"]?.split("---\n")[0] ?? "")).toMatchObject({ kind: "SandboxTemplate" });
  });

  it("refuses pods that somebody has given more than we would", async () => {
    await makePool(options(), (spec) => {
      if (spec.podTemplate) spec.podTemplate.spec.containers[0].securityContext.capabilities = { add: ["NET_ADMIN"] };
    });
    await expectRefused(open(), "unsupported", "NET_ADMIN");
    await removePool();
    await makePool(options(), (spec) => {
      if (spec.podTemplate) spec.podTemplate.metadata.annotations = { "k8s.v1.cni.cncf.io/networks": "open" };
    });
    await expectRefused(open(), "unsupported", "k8s.v1.cni.cncf.io/networks");
  });

  it("refuses pods that another policy opens, as the one of agent-sandbox does, or that are older than ours", async () => {
    await makePool(options(), (spec) => {
      delete spec.networkPolicyManagement;
      // The policies are looked at again for labels that no pod had in the last minute.
      if (spec.podTemplate) spec.podTemplate.metadata.labels.team = "other";
    });
    await expect
      .poll(() => list("NetworkPolicy").map(({ metadata }) => metadata.name))
      .toContain(`${POOL}-network-policy`);
    await expectRefused(open(), "unsupported", `${POOL}-network-policy`, "opens a way out");
    expect(await finding(options())).toMatchObject({
      status: "limited",
      detail: expect.stringContaining('is "Managed"') as unknown,
    });
    await removePool();
    cluster.store.remove(cluster.store.find("NetworkPolicy", "default", `${POOL}-network-policy`) as Stored);
    await makePool();
    change("Pod", ({ metadata }) => {
      metadata.creationTimestamp = "2001-01-01T00:00:00Z";
    });
    await expectRefused(open(), "unsupported", "it is from 2001-01-01T00:00:00Z, older than the NetworkPolicy");
  });

  it("gives a claim that nobody uses ten minutes, and one that is used the life of its sandbox", async () => {
    await makePool();
    const ends: (string | undefined)[] = [];
    const off = cluster.store.on(({ object }) => {
      if (object.kind === "SandboxClaim") ends.push(object["spec"].lifecycle.shutdownTime as string);
    });
    await using plain = await open();
    off();
    const inSeconds = (time: string | undefined): number => (Date.parse(time ?? "") - Date.now()) / 1_000;
    expect(inSeconds(ends[0])).toBeLessThan(605);
    expect(inSeconds(ends.at(-1))).toBeGreaterThan(6 * 24 * 3_600);
    expect(claimOf(plain)?.["spec"].lifecycle).toMatchObject({ shutdownPolicy: "Delete", ttlSecondsAfterFinished: 60 });
    await using limited = await open({}, { ttl: 60_000 });
    expect(inSeconds(claimOf(limited)?.["spec"].lifecycle.shutdownTime)).toBeLessThan(95);
  });

  it("keeps a sandbox with its files, and opens it again in the same pod", async () => {
    await makePool();
    const first = await open({}, { keep: true });
    await first.writeFile("file", "kept");
    const { uid } = podOf(first).metadata;
    expect(claimOf(first)?.["spec"].lifecycle.shutdownTime).toBeUndefined();
    await first.teardown();
    const second = await openSandbox({ id: first.id });
    expect(podOf(second).metadata.uid).toBe(uid);
    expect(await second.readFile("file")).toBe("kept");
    await second.teardown();
    await removeSandbox(first.id);
    expect(claimOf(first)).toBeUndefined();
  });

  it("forks into pods of the pool", async () => {
    await makePool();
    await using sandbox = await open();
    await sandbox.writeFile("file", "content");
    await expect.poll(readyOnes).toBe(2);
    const [fork] = await sandbox.fork({ count: 1 });
    await using _ = fork;
    expect(await fork?.readFile("file")).toBe("content");
    expect(list("SandboxClaim")).toHaveLength(2);
    expect(jobs()).toEqual([]);
  });

  it("names a pod that ends, and its claim goes a while after it", async () => {
    await makePool();
    const sandbox = await open();
    const lost = sandbox.shell("sleep 600").catch((error: unknown) => error);
    cluster.kubelet.evict(podOf(sandbox), "Evicted", "The node was low on resource: memory.");
    expect(await lost).toMatchObject({ code: "backend_lost", message: expect.stringContaining("Evicted") as unknown });
    change("SandboxClaim", (copy) => {
      copy["spec"].lifecycle.ttlSecondsAfterFinished = 1;
    });
    await expect.poll(() => list("SandboxClaim")).toEqual([]);
    await sandbox.teardown();
  });

  it("is found in the cluster by whoever looks for what was left", async () => {
    await makePool();
    await using sandbox = await open({}, { name: "of-the-pool" });
    await withEnv({ GLOVEBOX_BACKEND: "kubernetes", KUBECONFIG: cluster.kubeconfig }, async () => {
      const all = (await kubernetes.list?.()) ?? [];
      expect(all.map(({ id, name }) => ({ id, name }))).toEqual([{ id: sandbox.id, name: "of-the-pool" }]);
      await all[0]?.remove();
    });
    expect(claimOf(sandbox)).toBeUndefined();
  });

  it("needs rights of its own, which only doctor with a pool asks for", async () => {
    await makePool();
    const rules: Rule[] = [
      { groups: ["", "batch", "networking.k8s.io", "authorization.k8s.io"], resources: ["*"], verbs: ["*"] },
    ];
    const { kubeconfig } = cluster.addUser("jane", rules);
    const rights = async (own: KubernetesOptions): Promise<object | undefined> =>
      (await probeKubernetes({ options: options({ kubeconfig, ...own }) })).find(({ name }) => name === "rights");
    expect(await rights({ warmPool: undefined as never })).toMatchObject({ status: "ok" });
    const found = await rights({});
    expect(found).toMatchObject({
      status: "missing",
      detail: expect.stringContaining("create/list/watch/patch/delete sandboxclaims") as unknown,
      manifest: expect.stringContaining('apiGroups: ["extensions.agents.x-k8s.io"]') as unknown,
    });
    await expectRefused(open({ kubeconfig }), "permission_denied", "cannot create", "sandboxclaims");
    expect(await finding(options())).toMatchObject({ status: "ok", detail: `${POOL}: 2 of 2 pods are ready` });
  });
});
