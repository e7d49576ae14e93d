import type { Backend, Resource, SandboxEntry } from "../../../contracts/backend.js";
import { type LiveSecrets, withSecrets } from "../egress.js";
import { mirrorResources, planMirror, sweepScratch } from "../git.js";
import { openWith } from "../lifecycle.js";
import type { Sandbox, SandboxOptions } from "../types.js";
import { type ArchiveDetails, fillFrom, removeArchive } from "./kubernetes/archive.js";
import { KUBERNETES_CAPABILITIES } from "./kubernetes/capabilities.js";
import { clusterOf, lastingChoice } from "./kubernetes/clusters.js";
import type { KubernetesDriver } from "./kubernetes/driver.js";
import { ensureIsolation } from "./kubernetes/isolation.js";
import { marksOf } from "./kubernetes/labels.js";
import { ensureGuest, forgetGuest } from "./kubernetes/manifests/guest-config-map.js";
import { architectureOf } from "./kubernetes/manifests/job.js";
import { checkPossible, imageOf, kubernetesOptions, workDirOf } from "./kubernetes/options.js";
import { DEFAULT_LEASE, deadlineOf, guestArgv, type KubernetesPlan } from "./kubernetes/plan.js";
import { PodSandbox } from "./kubernetes/pod-sandbox.js";
import { probeKubernetes } from "./kubernetes/probe.js";
import { listRemote } from "./kubernetes/remote-list.js";
import { removeResource } from "./kubernetes/resources.js";

export type * from "./kubernetes/kubernetes-options.js";

/** Sandboxes in pods of a Kubernetes cluster. */
export const kubernetes: Backend = {
  name: "kubernetes",
  capabilities: () => KUBERNETES_CAPABILITIES,
  options: kubernetesOptions,
  images: (opts) => [imageOf(opts)],
  writtenOptions: [
    ...["context", "kubeconfig", "namespace", "image", "runtimeClassName", "serviceAccount", "nodeSelector"],
    ...["tolerations", "resources", "podTemplate", "warmPool", "workDir", "user", "lease"],
  ],
  check: checkPossible,
  startsFromSnapshots: true,
  canOpenNetwork: () => true,
  create: (opts, entry) => withSecrets(opts, entry, (secrets) => create(opts, entry, secrets)),
  async reopen(plan, opts, entry) {
    await sweepScratch(entry.id);
    return await withSecrets(opts, entry, (secrets) =>
      new PodSandbox(plan as KubernetesPlan, opts, entry, secrets).reopen(),
    );
  },
  removeResource,
  removeSnapshot: removeArchive,
  list: listRemote,
  probe: probeKubernetes,
  conformance: {
    sharesNetwork: false,
    skips: {
      "network.none-interfaces": "a pod has an interface; the network policy drops what goes in or out there",
    },
  },
};

/** Opens a sandbox in a pod of its own. */
export function createKubernetesSandbox(opts: SandboxOptions = {}): Promise<Sandbox> {
  return openWith(kubernetes, opts);
}

/** What the files of a new sandbox start from. */
interface Start extends ArchiveDetails {
  readonly workDir: string;
  /** What the record must name before. */
  readonly resources: readonly Resource[];
  /** The archive that has the files. Absent: they come from the repository, if there is one. */
  readonly archive?: string;
}

async function create(opts: SandboxOptions, entry: SandboxEntry, secrets: LiveSecrets): Promise<KubernetesDriver> {
  const { network = "none", limits = {}, kubernetes: own = {} } = opts;
  const { kubeconfig, context, namespace, lease = DEFAULT_LEASE, warmPool: pool, ...options } = own;
  const client = await clusterOf({ kubeconfig, context, namespace });
  const { resources, archive, source, base, image, workDir } = await startOf(opts, entry);
  const { signal } = entry;
  const reach = network === "full" ? "full" : "none";
  const where = {
    namespace: client.access.namespace,
    image,
    guest: await ensureGuest(client, architectureOf(options), { signal }),
    options,
  };
  await ensureIsolation(client, reach, where, { signal, progress: (message) => entry.progress(message) });
  const kept: KubernetesPlan = {
    cluster: lastingChoice({ kubeconfig, context, namespace }, client),
    network,
    lease,
    source,
    ...(base && { base }),
    ...(pool !== undefined && { pool }),
    pod: {
      ...where,
      name: `glovebox-${entry.id}`,
      argv: guestArgv(lease, workDir, entry.keep ? "kept" : "ends"),
      workDir,
      limits,
      network: reach,
      ...marksOf(entry),
      ...deadlineOf(entry),
    },
  };
  const fill = archive === undefined ? undefined : (driver: KubernetesDriver) => fillFrom(driver, archive);
  try {
    return await new PodSandbox(kept, opts, entry, secrets).create(resources, fill);
  } catch (error) {
    // A pod whose ConfigMap somebody has removed never starts. The next one looks for it again.
    forgetGuest(client);
    throw error;
  }
}

async function startOf(opts: SandboxOptions, entry: SandboxEntry): Promise<Start> {
  const image = imageOf(opts);
  const asked = opts.kubernetes?.image ?? opts.image;
  const workDir = workDirOf(opts);
  if (entry.snapshot !== undefined) {
    const { archive, details, workDir: saved } = entry.snapshot;
    const { source, base: old, image: before } = details as ArchiveDetails;
    const base = old && { ...old, branch: opts.branch ?? `glovebox/${entry.id}` };
    const isPlaced = opts.workDir !== undefined || opts.kubernetes?.workDir !== undefined;
    return {
      source,
      image: asked ?? before,
      workDir: isPlaced ? workDir : (saved ?? workDir),
      resources: base ? mirrorResources(base) : [],
      ...(base && { base }),
      ...(archive !== undefined && { archive }),
    };
  }
  if (opts.repo === undefined) return { source: "files", image, workDir, resources: [] };
  const { base, resources } = await planMirror(entry.id, { ...opts, repo: opts.repo });
  const source = `repository:${base.repository.gitDir}`;
  return { source, base, resources, image, workDir };
}
