import { existsSync, readdirSync } from "node:fs";
import { vi } from "vitest";
import { runtimeDir, sandboxesDir } from "../../../src/machine/home.js";
import { homeMark } from "../../../src/machine/owner-mark.js";
import type { KubernetesOptions } from "../../../src/sandbox/backends/kubernetes/kubernetes-options.js";
import { HOME_LABEL, SANDBOX_LABEL } from "../../../src/sandbox/backends/kubernetes/labels.js";
import { createKubernetesSandbox, kubernetes } from "../../../src/sandbox/backends/kubernetes.js";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { removeSandbox } from "../../../src/sandbox.js";
import type { ConformanceHarness } from "../../../src/testing.js";
import { api, namesIn } from "./cluster.js";

const COLLECTIONS = [
  ...["api/v1/pods", "api/v1/configmaps", "api/v1/persistentvolumeclaims"],
  ...["apis/batch/v1/jobs", "apis/networking.k8s.io/v1/networkpolicies"],
];

/** Everything in a namespace that belongs to sandboxes of this ledger, or of any. */
export async function objectsOfSandboxes(namespace: string, ofAny = false): Promise<string[]> {
  const selector = encodeURIComponent(ofAny ? SANDBOX_LABEL : `${SANDBOX_LABEL},${HOME_LABEL}=${homeMark()}`);
  const found: string[] = [];
  for (const collection of COLLECTIONS) {
    const kind = collection.slice(collection.lastIndexOf("/") + 1);
    const names = await namesIn(namespace, `${collection}?labelSelector=${selector}`);
    found.push(...names.map((name) => `${kind}/${name}`));
  }
  return found;
}

/** The objects that `list` names, once the cluster has removed the pods of Jobs that are gone. It does so by itself, after the Job. */
export async function collected(list: () => string[] | Promise<string[]>): Promise<string[]> {
  return await vi.waitUntil(
    async () => {
      const left = await list();
      const jobs = left.flatMap((name) => /^jobs\/(.*)$/.exec(name)?.[1] ?? []);
      const pods = left.flatMap((name) => /^pods\/(.*)-[a-z0-9]+$/.exec(name)?.[1] ?? []);
      return pods.every((job) => jobs.includes(job)) && left;
    },
    { timeout: 30_000, interval: 100 },
  );
}

/** The pod of a sandbox. */
export async function podOf(namespace: string, { id }: Pick<Sandbox, "id">): Promise<string> {
  const selector = encodeURIComponent(`${SANDBOX_LABEL}=${id}`);
  const { items } = await api("GET", `/api/v1/namespaces/${namespace}/pods?labelSelector=${selector}`);
  return items[0].metadata.name as string;
}

/** The kubernetes backend as the conformance kit sees it. */
export function createKubernetesHarness(
  name: string,
  options: KubernetesOptions & { namespace: string },
  defaults: SandboxOptions = {},
): ConformanceHarness {
  const opened: Sandbox[] = [];
  const { namespace } = options;
  return {
    backend: name,
    skips: kubernetes.conformance?.skips ?? {},
    async open(opts = {}) {
      const { resources, ...others } = options;
      // What a case limits can't be given as a resource, too.
      const own = { ...others, ...(opts.limits === undefined && { resources }), ...opts.kubernetes };
      const sandbox = await createKubernetesSandbox(
        opts.id === undefined ? { ...defaults, ...opts, kubernetes: own } : opts,
      );
      opened.push(sandbox);
      return sandbox;
    },
    remove: removeSandbox,
    async census() {
      const objects = await collected(() => objectsOfSandboxes(namespace));
      const places = opened.map(({ id }) => runtimeDir(id)).filter((path) => existsSync(path));
      return [...objects, ...places, ...readdirSync(sandboxesDir())];
    },
    host: {
      sharesNetwork: false,
      async sever(sandbox) {
        const path = `/api/v1/namespaces/${namespace}/pods/${await podOf(namespace, sandbox)}`;
        await api("DELETE", path, { gracePeriodSeconds: 0 });
      },
    },
  };
}
