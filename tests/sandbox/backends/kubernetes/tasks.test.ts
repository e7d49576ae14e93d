import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runBatch } from "../../../../src/batch.js";
import { sandboxesDir } from "../../../../src/machine/home.js";
import { currentOwner } from "../../../../src/machine/owner.js";
import type { KubernetesOptions } from "../../../../src/sandbox/backends/kubernetes/kubernetes-options.js";
import { taskPolicyManifest } from "../../../../src/sandbox/backends/kubernetes/manifests/network-policy.js";
import {
  type ContainerSetup,
  type ContainerSpec,
  createSandboxManager,
  type SandboxManager,
  type TaskEvent,
  type TaskSetup,
} from "../../../../src/tasks.js";
import { FakeCluster } from "../../../fakes/kubernetes/cluster.js";
import { KINDS } from "../../../fakes/kubernetes/kinds.js";
import { describeUnless } from "../../../support/describe-unless.js";
import { whyNoFakeCluster } from "../../../support/kubernetes/fake-place.js";
import { collected } from "../../../support/kubernetes/harness.js";
import { ImageRegistry } from "../../../support/kubernetes/image-registry.js";
import { expectRefused } from "../../../support/refused.js";
import { createScratch } from "../../../support/scratch.js";

const serve = (text: string, port = 8080): string =>
  `mkdir -p /tmp/www && echo ${text} > /tmp/www/index.html && exec busybox httpd -f -p ${port} -h /tmp/www`;

describeUnless(whyNoFakeCluster(), "tasks on an API server of ours", {}, () => {
  const scratch = createScratch();
  let cluster: FakeCluster;
  let registry: ImageRegistry;
  let plain: string;
  beforeAll(async () => {
    cluster = await FakeCluster.start(join(scratch.path, "cluster"));
    registry = await ImageRegistry.start();
    plain = addImage("plain", {});
  });
  afterAll(async () => {
    await registry[Symbol.asyncDispose]();
    await cluster.stop();
    scratch.remove();
  });

  function addImage(name: string, words: Parameters<ImageRegistry["add"]>[1]): string {
    const image = registry.add(name, words);
    cluster.habits.images.add(image);
    return image;
  }

  function box(name: string, spec: Partial<ContainerSpec> = {}, image = plain): ContainerSetup {
    return { name, spec: { imageSpec: { type: "pull", tag: image }, ...spec } };
  }

  function taskOf(taskId: string, services: Readonly<Record<string, ContainerSetup>> = {}): TaskSetup {
    return { taskId, agentContainer: box("agent"), serviceContainers: services };
  }

  function manage(own: KubernetesOptions = {}, networkEnabled = false): SandboxManager & { events: TaskEvent[] } {
    const events: TaskEvent[] = [];
    const kubernetes = { kubeconfig: cluster.kubeconfig, lease: 20_000, ...own };
    const manager = createSandboxManager({
      backend: "kubernetes",
      kubernetes,
      networkEnabled,
      onEvent: (event) => void events.push(event),
    });
    return Object.assign(manager, { events });
  }

  const left = async (): Promise<string[]> => [
    ...(await collected(() => cluster.objectsOfSandboxes())),
    ...readdirSync(sandboxesDir()),
  ];

  it("have a pod for each container, names, readiness, own commands and one teardown", async () => {
    const image = addImage("with-words", {
      Entrypoint: ["/bin/sh", "-c"],
      Cmd: [serve("from the image")],
      Healthcheck: { Test: ["CMD-SHELL", "busybox wget -qO- http://127.0.0.1:8080/"] },
    });
    const setup = taskOf("shop", {
      web: box("web", {
        command: `${serve("by command", 8081)}`,
        environment: { API_URL: "http://shop.local:8080/", SECRET: "not-to-be-seen" },
        waitFor: { port: 8081, timeout: 30_000 },
      }),
      shop: box("shop", { hostname: "shop.local", waitFor: { health: true, timeout: 30_000 } }, image),
    });
    const manager = manage();
    await using batch = await manager.setupBatch([setup]);
    const task = await batch.setupTask(setup);
    const run = async (id: string | undefined, script: string): Promise<string> => {
      const { stdout, stderr } = await manager.exec(id ?? "", script, { timeout: 20_000 });
      return stdout + stderr;
    };
    const { agentContainerId: agent, serviceContainers } = task.state;
    expect(await run(agent, "busybox wget -qO- http://shop.local:8080/")).toBe("from the image\n");
    expect(await run(agent, "busybox wget -qO- http://web:8081/")).toBe("by command\n");
    // It starts before what it is named in, whatever the order in the file.
    expect(await run(serviceContainers["web"], 'busybox wget -qO- "$API_URL"')).toBe("from the image\n");
    expect(await run(serviceContainers["shop"], "cat /tmp/www/index.html; pwd; echo $PWD")).toBe(
      "from the image\n/\n/\n",
    );
    expect(await run(agent, "getent hosts agent shop.local web | wc -l")).toBe("3\n");
    expect(task.status("shop")).toMatchObject({ running: true });
    const pods = cluster.store.list("Pod").filter(({ metadata }) => metadata.labels?.["glovebox/task"] !== undefined);
    expect(pods.length).toBe(3);
    expect(JSON.stringify(cluster.store.list("Pod")) + JSON.stringify(cluster.store.list("Job"))).not.toContain(
      "not-to-be-seen",
    );
    for (const { spec } of pods) {
      const [container] = spec.containers;
      expect(container.securityContext).toEqual({
        privileged: false,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ["ALL"] },
      });
      expect(container.resources.requests).toEqual(container.resources.limits);
      expect(spec).toMatchObject({ automountServiceAccountToken: false, dnsPolicy: "None" });
    }
    await expectRefused(manager.cloneSandboxState(task.state), "unsupported", "clone");
    await expectRefused(manager.exec(agent, "id", { user: "root" }), "unsupported", "user");
    await task.teardown();
    expect(await left()).toEqual([]);
    expect(manager.events.filter(({ type }) => type === "leak" || type === "warning")).toEqual([]);
  });

  it("reach their own services and nobody else's, in networks of their own", async () => {
    const setup = (id: string): TaskSetup =>
      taskOf(id, { web: box("web", { command: serve(id), waitFor: { port: 8080, timeout: 30_000 } }) });
    const manager = manage();
    await using batch = await manager.setupBatch([setup("one"), setup("two")]);
    const [one, two] = await Promise.all([batch.setupTask(setup("one")), batch.setupTask(setup("two"))]);
    const fetch = async (id: string, host: string): Promise<string> =>
      (await manager.exec(id, `busybox timeout 3 busybox wget -qO- http://${host}:8080/`)).stdout;
    expect(await fetch(one.state.agentContainerId, "web")).toBe("one\n");
    expect(await fetch(two.state.agentContainerId, "web")).toBe("two\n");
    const address = (await manager.exec(two.state.agentContainerId, "getent hosts web")).stdout.split(/\s/)[0] ?? "";
    expect(address).toMatch(/^10\.90\./);
    expect(await fetch(two.state.agentContainerId, address)).toBe("two\n");
    expect(await fetch(one.state.agentContainerId, address)).toBe("");
    await batch.teardown();
    expect(await left()).toEqual([]);
  });

  it.each([
    ["enforces nothing", { enforcesPolicies: false }, true, "reached a pod that is not part of it"],
    ["takes all pods for peers", { ignoresPeers: true }, false, "by a pod of another task"],
  ] as const)(
    "are refused where the network %s, before anything of them is made",
    async (name, habits, networkEnabled, why) => {
      const namespace = name.replaceAll(" ", "-");
      const usual = { ...cluster.habits };
      cluster.addNamespace(namespace);
      Object.assign(cluster.habits, habits);
      try {
        await using batch = await manage({ namespace }, networkEnabled).setupBatch([]);
        const setup = taskOf("open", { web: box("web", { command: serve("open") }) });
        await expectRefused(batch.setupTask(setup), "unsupported", "does not enforce the networks of tasks", why);
        const policies = cluster.store.list("NetworkPolicy", namespace).map(({ metadata }) => metadata.name);
        expect(policies.filter((policy) => policy.startsWith("glovebox-task-"))).toEqual([]);
        expect(await left()).toEqual([]);
      } finally {
        Object.assign(cluster.habits, usual);
      }
    },
  );

  it("need a name that no pod of another order can have, and are refused before anything is made", async () => {
    const manager = manage();
    await using batch = await manager.setupBatch([]);
    const before = cluster.store.list("Job").length;
    const circle = {
      a: box("a", { environment: { PEER_URL: "http://b:1" }, command: "sleep 60" }),
      b: box("b", { environment: { PEER_URL: "http://a:1" }, command: "sleep 60" }),
    };
    await expectRefused(batch.setupTask(taskOf("circle", circle)), "unsupported", '"a" reaches "b"');
    const limited = taskOf("limited");
    limited.agentContainer.spec.limits = { pids: 64 };
    await expectRefused(batch.setupTask(limited), "unsupported", "limits.pids");
    const built = taskOf("built");
    built.agentContainer.spec.imageSpec = { type: "build", tag: "mine:1", contextPath: scratch.path };
    await expectRefused(batch.setupTask(built), "unsupported", "mine:1", "builds no images");
    expect(cluster.store.list("Job").length).toBe(before);
    expect(await left()).toEqual([]);
  });

  it("are lines of a batch, and one without services has no network", async () => {
    const kubernetes = { kubeconfig: cluster.kubeconfig, lease: 20_000, image: "not-for-tasks" };
    const run = runBatch({
      tasks: ["a", "b"].map((id) => ({ id, setup: taskOf(id), run: "echo $GLOVEBOX_TASK_ID" })),
      out: join(scratch.path, "batch"),
      backend: "kubernetes",
      sandbox: { kubernetes },
    });
    const said: Record<string, string | undefined> = {};
    for await (const result of run) said[result.taskId] = result.outcome === "passed" ? result.stdout : result.outcome;
    expect(said).toEqual({ a: expect.stringMatching(/^a\n/), b: expect.stringMatching(/^b\n/) });
    expect(cluster.store.list("NetworkPolicy", "default").map(({ metadata }) => metadata.name)).toEqual([
      "glovebox-network-none",
    ]);
    expect(await left()).toEqual([]);
  });

  it("that dead processes left are removed by the next batch, and those of live ones are not", async () => {
    const make = (task: string, startTime: string): void => {
      const { bootId, pidNs, pid, host = "" } = currentOwner();
      const annotations = { "glovebox/owner": JSON.stringify([bootId, pidNs, pid, startTime, host]) };
      const labels = { "app.kubernetes.io/managed-by": "glovebox" };
      const body = taskPolicyManifest(task, { labels, annotations }) as Parameters<typeof cluster.store.create>[2];
      const kind = KINDS.find(({ plural }) => plural === "networkpolicies");
      if (kind !== undefined) cluster.store.create(kind, "sweeping", body);
    };
    cluster.addNamespace("sweeping");
    make("of-the-dead", "1");
    make("of-the-living", currentOwner().startTime);
    await using _ = await manage({ namespace: "sweeping" }).setupBatch([]);
    const policies = cluster.store.list("NetworkPolicy", "sweeping").map(({ metadata }) => metadata.name);
    expect(policies).toEqual(["glovebox-task-of-the-living"]);
  });

  it("whose service does not get ready leave nothing, and say what it wrote", async () => {
    const manager = manage();
    await using batch = await manager.setupBatch([]);
    const dying = box("db", { command: "echo no config; exit 7", waitFor: { port: 5432, timeout: 20_000 } });
    await expectRefused(batch.setupTask(taskOf("dies", { db: dying })), "unavailable", "exit code 7", "no config");
    const missing = box("db", { command: "true" }, "127.0.0.1:1/none:1");
    await expectRefused(batch.setupTask(taskOf("unreachable", { db: missing })), "unavailable", "127.0.0.1:1/none:1");
    expect(await left()).toEqual([]);
  });

  it("go with their first pod's policy when the process dies: the cluster removes it after the agent's Job", async () => {
    const setup = taskOf("owned", { web: box("web", { command: serve("x") }) });
    const manager = manage();
    await using batch = await manager.setupBatch([setup]);
    const task = await batch.setupTask(setup);
    const policy = (): unknown[] =>
      cluster.store
        .list("NetworkPolicy", "default")
        .filter(({ metadata }) => metadata.name.startsWith("glovebox-task-"));
    expect(policy().length).toBe(1);
    await cluster.deletePod(task.state.agentContainerId);
    const [job] = cluster.store
      .list("Job")
      .filter(({ metadata }) => metadata.labels?.["glovebox/sandbox"] === task.state.agentContainerId);
    if (job !== undefined) cluster.store.remove(job);
    await expect.poll(policy).toEqual([]);
    await task.teardown();
    expect(await left()).toEqual([]);
  });
});
