import { randomBytes } from "node:crypto";
import type { KubeCall, KubeClient } from "./client/kube-client.js";
import { KubeError } from "./client/kube-error.js";
import { JOBS, NETWORK_POLICIES, type Pod } from "./client/resources.js";
import { podFailure } from "./failures/pod-failure.js";
import { podOfJob } from "./job-pod.js";
import { marksOfCanary } from "./labels.js";
import { type CanaryNetwork, type CanaryPlan, canaryJob } from "./manifests/canary-job.js";
import { METADATA_ADDRESSES, type PodNetwork, taskPolicyManifest, taskPolicyName } from "./manifests/network-policy.js";
import { CONTAINER } from "./pod-template.js";

const PORT = "7077";
/** How long a pod tries to get through, in milliseconds. A cluster may need a moment until it restricts a pod, and that moment is what is looked for. */
const TRIES_FOR = "5000";
const PATIENCE = 120_000;
/** Where most clouds answer. */
const METADATA = ["169.254.169.254", "80"];

/** What a canary shows: that a network is restricted, or that the pods of a task reach each other and nobody else. */
export type Shows = PodNetwork | "task";

/** Whether what must not be reached can be reached: what was open, or undefined if nothing was. Throws if that can't be known. */
export async function flyCanary(
  client: KubeClient,
  shows: Shows,
  plan: CanaryPlan,
  { signal: caller, timeout = PATIENCE }: KubeCall = {},
): Promise<string | undefined> {
  const late = AbortSignal.timeout(timeout);
  const signal = caller === undefined ? late : AbortSignal.any([caller, late]);
  const flock = new Flock(client, plan, signal);
  try {
    return await TRIES[shows](flock);
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

/** A pod of a task must reach another one, and nothing else; and nobody else must reach it. */
async function tryTask(flock: Flock): Promise<string | undefined> {
  const [one, other] = await Promise.all([flock.task(), flock.task()]);
  const [peer, free] = await Promise.all([flock.listen("none", one), flock.listen(undefined)]);
  const targets = [peer, PORT, free, PORT];
  const [fromPeer, fromOther, fromFree] = await Promise.all([
    flock.dial([...targets, ...METADATA], "none", one),
    flock.dial([...targets, ...METADATA], "none", other),
    flock.dial(targets),
  ]);
  if ((fromPeer & 2) !== 0 || (fromOther & 2) !== 0) return "a pod of a task reached a pod that is not part of it";
  if ((fromOther & 1) !== 0) return "a pod of a task was reached by a pod of another task";
  if ((fromFree & 1) !== 0) return "a pod of a task was reached by a pod that is not part of it";
  if (((fromPeer | fromOther) & 4) !== 0) return "a pod of a task reached the cloud's metadata";
  if ((fromPeer & 1) !== 0 && (fromFree & 2) !== 0) return undefined;
  const pair = (fromPeer & 1) === 0 ? "two pods of a task" : "two pods under no policy of Glovebox";
  const why = `${pair} don't reach each other, so nothing is shown`;
  throw new KubeError("unsupported", `Kubernetes: whether the networks of tasks are enforced can't be shown: ${why}`, {
    hint: 'another policy may deny it, of the namespace or of the whole cluster; allow pods with the label "glovebox/task" to reach each other',
  });
}

const TRIES: Readonly<Record<Shows, (flock: Flock) => Promise<string | undefined>>> = {
  none: tryNone,
  full: tryFull,
  task: tryTask,
};

/** The pods of one canary. */
class Flock {
  readonly #client: KubeClient;
  readonly #plan: CanaryPlan;
  readonly #ending = new AbortController();
  readonly #signal: AbortSignal;
  readonly #names: string[] = [];
  readonly #tasks: string[] = [];
  readonly #started: Promise<unknown>[] = [];

  constructor(client: KubeClient, plan: CanaryPlan, signal: AbortSignal) {
    this.#client = client;
    this.#plan = plan;
    this.#signal = AbortSignal.any([signal, this.#ending.signal]);
  }

  /** Makes the policy of a task that has nothing but pods of this canary, and returns its name. */
  async task(): Promise<string> {
    const { namespace } = this.#plan;
    const task = `canary-${randomBytes(6).toString("hex")}`;
    this.#tasks.push(task);
    const made = this.#client.create(NETWORK_POLICIES, { namespace }, taskPolicyManifest(task, marksOfCanary()), {
      signal: this.#signal,
    });
    this.#started.push(made);
    await made;
    return task;
  }

  /** Starts a pod that listens, and returns its address. */
  async listen(network: PodNetwork | undefined, task?: string): Promise<string> {
    const pod = await this.#start(
      ["listen", PORT],
      { network, task },
      ({ status }) => status?.phase === "Running" && Boolean(status.podIP),
    );
    return pod.status?.podIP ?? "";
  }

  /** Runs a pod that dials, and returns a bit for each target that it reached. */
  async dial(targets: readonly string[], network?: PodNetwork, task?: string): Promise<number> {
    const pod = await this.#start(
      ["dial", TRIES_FOR, ...targets],
      { network, task },
      (found) => exitCodeOf(found) !== undefined,
    );
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
    const call = { timeout: 10_000 };
    await Promise.allSettled([
      ...this.#names.map((name) => this.#client.delete(JOBS, { namespace, name }, {}, call)),
      ...this.#tasks.map((task) =>
        this.#client.delete(NETWORK_POLICIES, { namespace, name: taskPolicyName(task) }, {}, call),
      ),
    ]);
  }

  #start(argv: readonly string[], where: CanaryNetwork, isDone: (pod: Pod) => boolean): Promise<Pod> {
    const started = this.#make(argv, where, isDone);
    this.#started.push(started);
    return started;
  }

  async #make(argv: readonly string[], where: CanaryNetwork, isDone: (pod: Pod) => boolean): Promise<Pod> {
    const { namespace } = this.#plan;
    const { name, body } = canaryJob(this.#plan, argv, where);
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
