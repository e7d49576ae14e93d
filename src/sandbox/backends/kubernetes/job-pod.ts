import type { KubeClient } from "./client/kube-client.js";
import { KubeError } from "./client/kube-error.js";
import { PODS, type Pod } from "./client/resources.js";
import { watch } from "./client/watch.js";
import { jobFailure } from "./failures/job-failure.js";

/** A Job whose pod is not there after this time may have been refused one, in milliseconds. */
const REFUSED_AFTER = 2_000;

/** What to wait for. */
export interface JobPodOptions {
  readonly signal: AbortSignal;
  /** Whether this is the wanted state. Throws if it will never come. */
  isDone(pod: Pod): boolean;
}

/** Waits until the pod of a Job is in a state. Rejects if the cluster refuses to make one. */
export async function podOfJob(client: KubeClient, job: string, { signal, isDone }: JobPodOptions): Promise<Pod> {
  const ending = new AbortController();
  const either = AbortSignal.any([signal, ending.signal]);
  let hasPod = false;
  const done = (pod: Pod): boolean => {
    hasPod = true;
    return isDone(pod);
  };
  try {
    return await Promise.race([follow(client, job, either, done), refusal(client, job, either, () => hasPod)]);
  } finally {
    ending.abort();
  }
}

async function follow(
  client: KubeClient,
  job: string,
  signal: AbortSignal,
  isDone: (pod: Pod) => boolean,
): Promise<Pod> {
  const { namespace } = client.access;
  for await (const event of watch<Pod>(client, PODS, { namespace }, { labels: `job-name=${job}`, signal })) {
    const pods = event.type === "all" ? event.objects : event.type === "set" ? [event.object] : [];
    const found = pods.find(isDone);
    if (found !== undefined) return found;
  }
  throw new KubeError("internal", "a watch has ended");
}

/** Rejects if the cluster refuses to make the pod; never resolves. */
function refusal(client: KubeClient, job: string, signal: AbortSignal, hasPod: () => boolean): Promise<never> {
  return new Promise((_resolve, reject) => {
    const timer = setInterval(() => {
      if (hasPod()) return;
      jobFailure(client, job, { signal }).then(
        (failure) => failure && reject(failure),
        () => undefined,
      );
    }, REFUSED_AFTER);
    signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  });
}
