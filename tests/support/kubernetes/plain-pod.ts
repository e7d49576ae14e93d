import { vi } from "vitest";
import { api, callApi, runInNode } from "./cluster.js";

/** What a busy cluster may take. */
const PATIENCE = { timeout: 120_000, interval: 100 };

/** A namespace with its service account, which a pod needs. */
export async function createNamespace(name: string): Promise<AsyncDisposable> {
  await api("POST", "/api/v1/namespaces", { metadata: { name } });
  const path = `/api/v1/namespaces/${name}`;
  await vi.waitUntil(async () => (await callApi("GET", `${path}/serviceaccounts/default`)).status === 200, PATIENCE);
  return {
    async [Symbol.asyncDispose]() {
      await api("DELETE", path);
      await vi.waitUntil(async () => (await callApi("GET", path)).status === 404, PATIENCE);
    },
  };
}

/** A pod of BusyBox without anything of ours; resolves once it runs, with its address. */
export async function startPlainPod(
  namespace: string,
  name: string,
  { node, script, labels = {} }: { node: string; script: string; labels?: Record<string, string> },
): Promise<string> {
  const container = {
    name: "main",
    image: "glovebox-test/busybox:1",
    imagePullPolicy: "IfNotPresent",
    command: ["sh", "-c", script],
  };
  await api("POST", `/api/v1/namespaces/${namespace}/pods`, {
    metadata: { name, labels },
    spec: {
      nodeName: node,
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      containers: [container],
    },
  });
  const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
  await vi.waitUntil(async () => (await api("GET", path)).status.phase === "Running", PATIENCE);
  return (await api("GET", path)).status.podIP as string;
}

/** Runs a command in a pod by the engine of its node, without the API server. */
export async function runInPod(node: string, namespace: string, pod: string, ...argv: string[]): Promise<number> {
  const list = `ctr -n k8s.io containers ls -q labels."io.kubernetes.pod.name"==${pod},labels."io.kubernetes.pod.namespace"==${namespace},labels."io.kubernetes.container.name"==main`;
  const id = (await runInNode(node, "sh", "-c", list)).trim();
  const run = ["ctr", "-n", "k8s.io", "tasks", "exec", "--exec-id", `test-${Date.now()}`, id, ...argv];
  return await runInNode(node, ...run).then(
    () => 0,
    () => 1,
  );
}
