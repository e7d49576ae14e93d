import { SandboxError } from "../../../../contracts/errors.js";
import { GuestChannel, type Link, RelayStream } from "../../guest.js";
import type { KubeClient } from "./client/kube-client.js";
import { hasStatus, type KubeError } from "./client/kube-error.js";
import { JOBS, type Job, type Pod } from "./client/resources.js";
import { isRunning, podFailure, schedulingDelay } from "./failures/pod-failure.js";
import { replaced } from "./failures/pod-loss.js";
import { podOfJob } from "./job-pod.js";
import { GUEST_PATH, jobManifest } from "./manifests/job.js";
import type { KubernetesPlan } from "./plan.js";
import { linkToPod, type PodPlace, type ReachOptions } from "./pod-link.js";
import { CONTAINER } from "./pod-template.js";
import { findClaimed } from "./warm/claimed-pod.js";

/** The guest says something every five seconds; after this silence the connection counts as dead, in milliseconds. */
const SILENCE = 15_000;
/** A host that has not reached its guest for the lease goes on a little longer than the guest. */
const AFTER_LEASE = 5_000;

/** How long a pod may wait for a node, in milliseconds. */
const UNSCHEDULED = 60_000;

/** How a pod is waited for. */
export interface StartOptions {
  readonly signal: AbortSignal;
  /** Called with the reason why it takes longer. */
  onWait(why: string): void;
}

/** A pod whose first process is the guest. */
export interface RunningPod {
  readonly client: KubeClient;
  readonly place: PodPlace;
  readonly channel: GuestChannel;
  /** Where other pods reach it. Empty if the cluster doesn't say. */
  readonly address: string;
  /** The environment of the container. */
  readonly env: Readonly<Record<string, string>>;
  /** Ends all processes, and the pod unless it is kept. */
  stop(): Promise<void>;
}

/** Creates the Job, and returns once its guest answers. The caller deletes it if this fails. */
export async function startPod(client: KubeClient, plan: KubernetesPlan, opts: StartOptions): Promise<RunningPod> {
  const { namespace } = client.access;
  const { signal } = opts;
  signal.throwIfAborted();
  await client.create<Job>(JOBS, { namespace }, jobManifest(plan.pod), { signal }).catch((error: unknown) => {
    // Its name is ours alone: a create whose answer was lost has made it.
    if (!hasStatus(error, 409)) throw error;
  });
  return await joinPod(client, plan, opts);
}

/** Waits until the pod of a sandbox runs, and connects to its guest. */
export async function joinPod(client: KubeClient, plan: KubernetesPlan, opts: StartOptions): Promise<RunningPod> {
  const { claimed, podUid: uid } = plan;
  const pod =
    claimed === undefined
      ? await runningPod(client, plan, opts)
      : await findClaimed(client, { name: claimed, uid }, { signal: opts.signal });
  return await connectPod(client, plan, pod, opts);
}

/** Connects to the guest of a pod that runs. */
export async function connectPod(
  client: KubeClient,
  plan: KubernetesPlan,
  pod: Pod,
  { signal, ...how }: Pick<StartOptions, "signal"> & ReachOptions,
): Promise<RunningPod> {
  const { namespace } = client.access;
  const { name, uid = "" } = pod.metadata;
  const place = { namespace, pod: name, uid, container: CONTAINER, program: GUEST_PATH };
  const link = linkToPod(client, place, how);
  const stream = new RelayStream(link, { silence: SILENCE, patience: plan.lease + AFTER_LEASE });
  const channel = new GuestChannel(stream);
  const onAbort = (): void => channel.close(new SandboxError("aborted", "opening the sandbox was aborted"));
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const hello = await channel.hello;
    if (hello.complaint !== "") {
      throw new SandboxError("no_isolation", `the self-test of the pod failed: ${hello.complaint}`);
    }
  } catch (error) {
    channel.close();
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
  channel.unref();
  const address = pod.status?.podIP ?? "";
  return { client, place, channel, address, env: stream.environment, stop: () => stop(channel, link) };
}

async function stop(channel: GuestChannel, link: Link): Promise<void> {
  if (!channel.isClosed) await link.finish();
  channel.close();
}

/** A pod that no node has room for waits a while: others may end, and nodes be added. */
async function runningPod(
  client: KubeClient,
  { pod: { name: job }, podUid }: KubernetesPlan,
  { signal, onWait }: StartOptions,
): Promise<Pod> {
  const late = new AbortController();
  let delay: KubeError | undefined;
  let timer: NodeJS.Timeout | undefined;
  const isDone = (pod: Pod): boolean => {
    // Before 1.26, a Job makes another pod for one that was deleted.
    if (podUid !== undefined && pod.metadata.uid !== podUid) throw replaced(job, false);
    const failure = podFailure(pod);
    if (failure !== undefined) throw failure;
    delay = schedulingDelay(pod);
    if (delay === undefined) {
      clearTimeout(timer);
      timer = undefined;
    } else if (timer === undefined) {
      onWait(delay.message);
      timer = setTimeout(() => late.abort(), UNSCHEDULED);
    }
    return isRunning(pod);
  };
  try {
    return await podOfJob(client, job, { signal: AbortSignal.any([signal, late.signal]), isDone });
  } catch (error) {
    throw late.signal.aborted && delay !== undefined ? delay : error;
  } finally {
    clearTimeout(timer);
  }
}
