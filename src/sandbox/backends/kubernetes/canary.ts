import type { KubeCall, KubeClient } from "./client/kube-client.js";
import { KubeError } from "./client/kube-error.js";
import { JOBS, type Pod } from "./client/resources.js";
import { podFailure } from "./failures/pod-failure.js";
import { podOfJob } from "./job-pod.js";
import { type CanaryPlan, canaryJob } from "./manifests/canary-job.js";
import { METADATA_ADDRESSES, type PodNetwork } from "./manifests/network-policy.js";
import { CONTAINER } from "./pod-template.js";

const PORT = "7077";
/** How long a pod tries to get through, in milliseconds. A cluster may need a moment until it restricts a pod, and that moment is what is looked for. */
const TRIES_FOR = "5000";
const PATIENCE = 120_000;
/** Where most clouds answer. */
const METADATA = ["169.254.169.254", "80"];

/** Whether what must not be reached can be reached: what was open, or undefined if nothing was. Throws if that can't be known. */
export async function flyCanary(
  client: KubeClient,
  network: PodNetwork,
  plan: CanaryPlan,
  { signal: caller, timeout = PATIENCE }: KubeCall = {},
): Promise<string | undefined> {
  const late = AbortSignal.timeout(timeout);
  const signal = caller === undefined ? late : AbortSignal.any([caller, late]);
  const flock = new Flock(client, plan, signal);
  try {
    return network === "none" ? await tryNone(flock) : await tryFull(flock);
  } catch (error) {
    if (caller?.aborted !== true && late.aborted) {
      const message = `Kubernetes: whether network policies are enforced could not be shown within ${timeout} ms`;
      throw new KubeError("unavailable", message, {
        cause: error,
        hint: "see why pods don't start: kubectl get events",
      });
    }
    throw error;
  } finally {
    await flock.remove();
  }
}

/** One restricted and one free pod listen; a restricted and a free pod dial both. Only the free one may get through, and only to the free one. */
async function tryNone(flock: Flock): Promise<string | undefined> {
  const [free, restricted] = await Promise.all([flock.listen(undefined), flock.listen("none")]);
  const targets = [free, PORT, restricted, PORT];
  const [fromFree, fromRestricted] = await Promise.all([
    flock.dial(targets),
    flock.dial([...targets, ...METADATA], "none"),
  ]);
  if ((fromRestricted & 1) !== 0) return "a pod under a policy that denies everything reached another pod";
  if ((fromRestricted & 2) !== 0 || (fromFree & 2) !== 0)
    return "a pod under a policy that denies everything was reached by another pod";
  if ((fromRestricted & 4) !== 0) return "a pod under a policy that denies everything reached the cloud's metadata";
  if ((fromFree & 1) !== 0) return undefined;
  const why = "pods under no policy of Glovebox don't reach each other either, so it proves nothing";
  throw new KubeError("unsupported", `Kubernetes: whether network policies are enforced can't be shown: ${why}`, {
    hint: 'another policy of the namespace may deny everything; allow pods with the label "glovebox/network: unrestricted" to reach each other',
  });
}

async function tryFull(flock: Flock): Promise<string | undefined> {
  const reached = await flock.dial(METADATA, "full");
  const [network] = METADATA_ADDRESSES.v4;
  return reached === 0 ? undefined : `a pod under a policy that denies ${network} reached the cloud's metadata`;
}

/** The pods of one canary. */
class Flock {
  readonly #client: KubeClient;
  readonly #plan: CanaryPlan;
  readonly #ending = new AbortController();
  readonly #signal: AbortSignal;
  readonly #names: string[] = [];
  readonly #started: Promise<Pod>[] = [];

  constructor(client: KubeClient, plan: CanaryPlan, signal: AbortSignal) {
    this.#client = client;
    this.#plan = plan;
    this.#signal = AbortSignal.any([signal, this.#ending.signal]);
  }

  /** Starts a pod that listens, and returns its address. */
  async listen(network: PodNetwork | undefined): Promise<string> {
    const pod = await this.#start(
      ["listen", PORT],
      network,
      ({ status }) => status?.phase === "Running" && Boolean(status.podIP),
    );
    return pod.status?.podIP ?? "";
  }

  /** Runs a pod that dials, and returns a bit for each target that it reached. */
  async dial(targets: readonly string[], network?: PodNetwork): Promise<number> {
    const pod = await this.#start(["dial", TRIES_FOR, ...targets], network, (found) => exitCodeOf(found) !== undefined);
    const reached = exitCodeOf(pod) ?? 0;
    if (reached < 1 << (targets.length / 2)) return reached;
    throw podFailure(pod) ?? new KubeError("unavailable", `Kubernetes: a canary exited with ${reached}`);
  }

  /** Removes all of them. What can't be removed, the cluster ends by itself. */
  async remove(): Promise<void> {
    const { namespace } = this.#plan;
    // One that is still being made would be made after it is removed.
    this.#ending.abort();
    await Promise.allSettled(this.#started);
    const gone = this.#names.map((name) => this.#client.delete(JOBS, { namespace, name }, {}, { timeout: 10_000 }));
    await Promise.allSettled(gone);
  }

  #start(argv: readonly string[], network: PodNetwork | undefined, isDone: (pod: Pod) => boolean): Promise<Pod> {
    const started = this.#make(argv, network, isDone);
    this.#started.push(started);
    return started;
  }

  async #make(argv: readonly string[], network: PodNetwork | undefined, isDone: (pod: Pod) => boolean): Promise<Pod> {
    const { namespace } = this.#plan;
    const { name, body } = canaryJob(this.#plan, argv, network);
    this.#names.push(name);
    await this.#client.create(JOBS, { namespace }, body, { signal: this.#signal });
    return await podOfJob(this.#client, name, {
      signal: this.#signal,
      isDone(pod) {
        if (isDone(pod)) return true;
        const failure = exitCodeOf(pod) === undefined ? podFailure(pod) : undefined;
        if (failure !== undefined) throw failure;
        return false;
      },
    });
  }
}

function exitCodeOf({ status }: Pod): number | undefined {
  const own = status?.containerStatuses?.find(({ name }) => name === CONTAINER)?.state?.terminated;
  return own?.reason === "OOMKilled" ? undefined : own?.exitCode;
}
