import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { reap } from "../../src/sandbox.js";
import {
  type ContainerSetup,
  type ContainerSpec,
  createSandboxManager,
  type SandboxManager,
  type TaskSetup,
} from "../../src/tasks.js";
import { createBench } from "../support/cli.js";
import { describeUnless } from "../support/describe-unless.js";
import { api, namesIn, testCluster, whyNoTestCluster } from "../support/kubernetes/cluster.js";
import { useInstalledImage } from "../support/kubernetes/installed-image.js";
import { killClient } from "../support/kubernetes/killed-client.js";
import { expectNothingLeft, expectNothingLeftIn, policiesOfTasks } from "../support/kubernetes/left-of.js";
import { useKubePlace } from "../support/kubernetes/place.js";
import { createNamespace, startPlainPod } from "../support/kubernetes/plain-pod.js";
import { expectRefused } from "../support/refused.js";

const RESOURCES = { cpu: "100m", memory: "64Mi" };

const serve = (text: string): string =>
  `mkdir -p /tmp/www && echo ${text} > /tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www`;

describeUnless(whyNoTestCluster(), "tasks on a real cluster", {}, () => {
  const place = useKubePlace("tasks");
  const plain = useInstalledImage("team/plain");
  const web = useInstalledImage("team/web", {
    Entrypoint: ["/bin/sh", "-c"],
    Cmd: [serve("from the image")],
    WorkingDir: "/etc",
    User: "1234:2345",
  });

  function box(name: string, spec: Partial<ContainerSpec> = {}, tag = plain()): ContainerSetup {
    return { name, spec: { imageSpec: { type: "pull", tag }, ...spec } };
  }

  function taskOf(taskId: string, services: Readonly<Record<string, ContainerSetup>> = {}): TaskSetup {
    return { taskId, agentContainer: box("agent"), serviceContainers: services };
  }

  const options = (namespace: string) => ({
    kubeconfig: testCluster().kubeconfig,
    namespace,
    lease: 20_000,
    resources: RESOURCES,
  });

  function manage(namespace = place.namespace, networkEnabled = false): SandboxManager {
    return createSandboxManager({ backend: "kubernetes", networkEnabled, kubernetes: options(namespace) });
  }

  const policies = (): Promise<string[]> => policiesOfTasks(place.namespace);

  it.concurrent("run the image's own command as its own user, and find each other by name", async () => {
    const setup = taskOf("shop", {
      web: box("web", { hostname: "shop.local", waitFor: { port: 8080, timeout: 60_000 } }, web()),
      api: box("api", {
        command: serve("by command"),
        environment: { SHOP_URL: "http://shop.local:8080/", TOKEN: "not-to-be-seen" },
        limits: { memory: 128 << 20 },
        waitFor: { command: 'wget -qO- "$SHOP_URL"', timeout: 60_000 },
      }),
    });
    const manager = manage();
    await using batch = await manager.setupBatch([setup]);
    const task = await batch.setupTask(setup);
    const run = async (id: string | undefined, script: string): Promise<string> => {
      const { stdout, stderr } = await manager.exec(id ?? "", script, { timeout: 30_000 });
      return stdout + stderr;
    };
    const { agentContainerId: agent, serviceContainers } = task.state;
    expect(await run(agent, "wget -qO- http://shop.local:8080/; wget -qO- http://api:8080/")).toBe(
      "from the image\nby command\n",
    );
    expect(await run(serviceContainers["web"], "id -u; id -g; pwd")).toBe("1234\n2345\n/etc\n");
    expect(await run(agent, "id -u; grep CapPrm /proc/self/status; ls /var/run/secrets 2>/dev/null")).toBe(
      "0\nCapPrm:\t0000000000000000\n",
    );
    // No name server is asked, and so none is waited for.
    const began = performance.now();
    expect(await run(agent, "wget -qO- http://nobody.test/ 2>&1; true")).toContain("bad address");
    expect(performance.now() - began).toBeLessThan(5_000);
    const { items } = await api("GET", `/api/v1/namespaces/${place.namespace}/pods`);
    expect(JSON.stringify(items)).not.toContain("not-to-be-seen");
    const made = (
      items as { metadata: { annotations?: Record<string, string> }; spec: { containers: object[] } }[]
    ).find(({ metadata }) => metadata.annotations?.["glovebox/name"]?.includes("-api-"));
    const amounts = { cpu: "100m", memory: String(128 << 20) };
    expect(made?.spec.containers).toMatchObject([{ resources: { limits: amounts, requests: amounts } }]);
    expect(await policies()).toHaveLength(1);
    await expectRefused(manager.cloneSandboxState(task.state), "unsupported", "clone");
    await task.teardown();
    expect(await policies()).toEqual([]);
    await expectNothingLeftIn(place.namespace);
  });

  it.concurrent("with a network reach other machines, and are reached by their own task only", async () => {
    const setup = (id: string): TaskSetup =>
      taskOf(id, { web: box("web", { command: serve(id), waitFor: { port: 8080, timeout: 60_000 } }) });
    await using own = await place.beside("network");
    const [node] = testCluster().nodes;
    const outside = await startPlainPod(own.namespace, "outside", {
      node: node?.name ?? "",
      script: serve("outside"),
    });
    const manager = manage(own.namespace, true);
    await using batch = await manager.setupBatch([setup("one"), setup("two")]);
    const [one, two] = await Promise.all([batch.setupTask(setup("one")), batch.setupTask(setup("two"))]);
    const hosts = (await manager.exec(two.state.agentContainerId, "cat /etc/hosts")).stdout;
    const other = /^(10\.97\.[\d.]+)\s+web$/m.exec(hosts)?.[1];
    const fetch = async (host: string | undefined): Promise<string> =>
      (await manager.exec(one.state.agentContainerId, `timeout 5 wget -qO- http://${host}:8080/`)).stdout;
    expect(await fetch("web")).toBe("one\n");
    expect(await fetch(outside)).toBe("outside\n");
    expect(await fetch(other)).toBe("");
    await batch.teardown();
    await expectNothingLeftIn(own.namespace);
  });

  it("reach nothing of another task, nor of the cluster, nor anything else", async () => {
    const setup = (id: string): TaskSetup =>
      taskOf(id, { web: box("web", { command: serve(id), waitFor: { port: 8080, timeout: 60_000 } }) });
    const manager = manage();
    await using batch = await manager.setupBatch([setup("one"), setup("two")]);
    const [one, two] = await Promise.all([batch.setupTask(setup("one")), batch.setupTask(setup("two"))]);
    const fetch = async (id: string, url: string): Promise<string> =>
      (await manager.exec(id, `timeout 5 wget -qO- ${url}`)).stdout;
    expect(await fetch(one.state.agentContainerId, "http://web:8080/")).toBe("one\n");
    expect(await fetch(two.state.agentContainerId, "http://web:8080/")).toBe("two\n");
    const hosts = (await manager.exec(two.state.agentContainerId, "cat /etc/hosts")).stdout;
    const address = /^(10\.97\.[\d.]+)\s+web$/m.exec(hosts)?.[1];
    expect(address).toBeDefined();
    expect(await fetch(two.state.agentContainerId, `http://${address}:8080/`)).toBe("two\n");
    expect(await fetch(one.state.agentContainerId, `http://${address}:8080/`)).toBe("");
    await batch.teardown();
    await expectNothingLeft(place.namespace);
  });

  it("of a manager that is killed are reaped", async () => {
    const ids = JSON.parse(
      await killClient("hold-kubernetes-task.mjs", { image: plain(), kubernetes: options(place.namespace) }),
    ) as string[];
    expect(ids).toHaveLength(2);
    expect(await policies()).toHaveLength(1);
    const report = await reap({ backend: "kubernetes" });
    expect(report.removed.sort()).toEqual(ids.sort());
    expect(await policies()).toEqual([]);
    await expectNothingLeft(place.namespace);
  });

  it("run from a file, by one word", async () => {
    const bench = createBench();
    try {
      const config = JSON.parse(readFileSync(testCluster().kubeconfig, "utf8")) as { contexts: { context: object }[] };
      for (const each of config.contexts) Object.assign(each.context, { namespace: place.namespace });
      const kubeconfig = join(bench.path, "kubeconfig");
      writeFileSync(kubeconfig, JSON.stringify(config));
      const small = { memory: 64 << 20, cpus: 0.1 };
      const spec = { imageSpec: { type: "pull", tag: plain() }, limits: small };
      const file = {
        tasks: ["a", "b"].map((taskId) => ({
          taskId,
          agentContainer: { name: "agent", spec },
          serviceContainers: {
            web: { name: "web", spec: { ...spec, command: serve(taskId), waitFor: { port: 8080 } } },
          },
          run: "wget -qO- http://web:8080/",
        })),
      };
      writeFileSync(join(bench.path, "tasks.json"), JSON.stringify(file));
      const { code, stdout, stderr } = await bench.run(["task", "run", "tasks.json", "--backend", "kubernetes"], {
        env: { KUBECONFIG: kubeconfig },
      });
      expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
      const results = stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as { taskId: string; outcome: string; stdout: string });
      expect(results.map(({ taskId, outcome, stdout: said }) => [taskId, outcome, said]).sort()).toEqual([
        ["a", "passed", "a\n"],
        ["b", "passed", "b\n"],
      ]);
      expect(await policies()).toEqual([]);
    } finally {
      bench.remove();
    }
  });
});

describeUnless(whyNoTestCluster(), "tasks on a cluster that enforces nothing", { concurrent: true }, () => {
  const plain = useInstalledImage("team/plain");
  for (const [network, networkEnabled] of [
    ["without a network", false],
    ["with a network", true],
  ] as const) {
    it(`are refused ${network}, before anything of them is made`, async () => {
      const namespace = `open-tasks-${networkEnabled}-${process.pid}`;
      await using _ = await createNamespace(namespace);
      const kubernetes = { kubeconfig: testCluster().kubeconfig, namespace, resources: RESOURCES };
      const imageSpec = { type: "pull", tag: plain() } as const;
      const container = (name: string): ContainerSetup => ({ name, spec: { imageSpec } });
      const manager = createSandboxManager({ backend: "kubernetes", networkEnabled, kubernetes });
      await using batch = await manager.setupBatch([]);
      const web = { name: "web", spec: { ...container("web").spec, command: serve("x") } };
      const setup = { taskId: "open", agentContainer: container("agent"), serviceContainers: { web } };
      await expectRefused(batch.setupTask(setup), "unsupported", "does not enforce");
      const policies = await namesIn(namespace, "apis/networking.k8s.io/v1/networkpolicies");
      expect(policies.filter((name) => name.includes("task"))).toEqual([]);
      expect(await namesIn(namespace, "apis/batch/v1/jobs")).toEqual([]);
    });
  }
});
