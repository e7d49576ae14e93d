import { afterAll, beforeAll } from "vitest";
import type { KubernetesOptions } from "../../../src/sandbox/backends/kubernetes/kubernetes-options.js";
import { createKubernetesSandbox } from "../../../src/sandbox/backends/kubernetes.js";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { createScratch } from "../scratch.js";
import { testCluster } from "./cluster.js";
import { enforcePolicies } from "./enforce-policies.js";
import { createNamespace } from "./plain-pod.js";

/** Small, so that the nodes have room for many. */
const RESOURCES = { cpu: "400m", memory: "512Mi" };
const IMAGE = "glovebox-test/debian:1";

/** A namespace of the cluster for the tests of a file, with policies enforced. */
export interface KubePlace {
  readonly namespace: string;
  /** What every sandbox here is opened with. */
  readonly options: () => SandboxOptions & { kubernetes: KubernetesOptions };
  open(opts?: SandboxOptions): Promise<Sandbox>;
}

/** Makes the place before the tests of a file, and removes it after them. */
export function useKubePlace(name: string): KubePlace {
  const namespace = `${name}-${process.pid}`;
  const scratch = createScratch();
  const made: AsyncDisposable[] = [];
  beforeAll(async () => {
    made.push(await createNamespace(namespace));
    made.push(await enforcePolicies());
  });
  afterAll(async () => {
    for (const each of made.reverse()) await each[Symbol.asyncDispose]();
    scratch.remove();
  });
  const options = (): ReturnType<KubePlace["options"]> => ({
    image: IMAGE,
    kubernetes: { kubeconfig: testCluster().kubeconfig, namespace, lease: 20_000, resources: RESOURCES },
  });
  return {
    namespace,
    options,
    open(opts = {}) {
      const { resources, ...others } = options().kubernetes;
      const own = { ...others, ...(opts.limits === undefined && { resources }), ...opts.kubernetes };
      return createKubernetesSandbox({ image: IMAGE, ...opts, kubernetes: own });
    },
  };
}
