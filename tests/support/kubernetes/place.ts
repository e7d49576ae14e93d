import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect } from "vitest";
import { sandboxesDir } from "../../../src/machine/home.js";
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

/** A namespace of the cluster, with policies enforced. */
export interface KubePlace {
  readonly namespace: string;
  /** What every sandbox here is opened with. */
  readonly options: () => SandboxOptions & { kubernetes: KubernetesOptions };
  open(opts?: SandboxOptions): Promise<Sandbox>;
}

/** The place for the tests of a file. */
export interface FilePlace extends KubePlace {
  /** Makes a place for one of the tests that run at the same time. */
  beside(name: string): Promise<PlaceBeside>;
}

/** The place of a test while others run in theirs. They share a ledger. */
export interface PlaceBeside extends KubePlace, AsyncDisposable {
  /** Another Glovebox home, for a client that is killed: no process with the home of this one removes what it leaves. */
  readonly home: string;
}

/** Makes the place before the tests of a file, and removes it after them; nothing may be left in the ledger then. */
export function useKubePlace(name: string): FilePlace {
  const namespace = `${name}-${process.pid}`;
  const scratch = createScratch();
  const made: AsyncDisposable[] = [];
  beforeAll(async () => {
    made.push(await createNamespace(namespace));
    made.push(await enforcePolicies());
  });
  afterAll(async () => {
    for (const each of made.reverse()) await each[Symbol.asyncDispose]();
    const left = readdirSync(sandboxesDir());
    scratch.remove();
    expect(left).toEqual([]);
  });
  return {
    ...placeIn(namespace),
    async beside(own) {
      const beside = `${name}-${own}-${process.pid}`;
      const namespaceOfTest = await createNamespace(beside);
      return { ...namespaceOfTest, ...placeIn(beside), home: join(scratch.path, `home-of-${own}`) };
    },
  };
}

function placeIn(namespace: string): KubePlace {
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
