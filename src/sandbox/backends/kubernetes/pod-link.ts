import { SandboxError } from "../../../../contracts/errors.js";
import { createLink, type Link, type LinkConnection } from "../../guest.js";
import type { KubeClient } from "./client/kube-client.js";
import { hasStatus, KubeError } from "./client/kube-error.js";
import { execInPod, type PodStream } from "./client/pod-exec.js";
import { podLoss } from "./failures/pod-loss.js";

/** Where a guest runs. */
export interface PodPlace {
  readonly namespace: string;
  readonly pod: string;
  readonly uid: string;
  readonly container: string;
  /** Path of the guest's program in the container. */
  readonly program: string;
}

/** How a guest is reached. */
export interface ReachOptions {
  /** The guest has waited for whoever comes first: if it belongs to somebody, that is not us, and it is `conflict`. */
  readonly isFirst?: boolean;
  /** A guest that waited is to keep the files when its lease is over. */
  readonly keeps?: boolean;
}

const CONNECT_TIMEOUT = 15_000;
const END_TIMEOUT = 5_000;
/** An exit code of the relay. */
const REFUSED = 4;
/** A first connection may be refused once because nobody heard it in time. */
const MOST_REFUSALS = 2;
/** Exit codes of the relay; see `guest/channel/attach.c`. */
const RELAY_FAILURES: Readonly<Record<number, string>> = {
  3: "no guest answers in the container",
  [REFUSED]: "the guest refuses the connection: its lease is over, or another process has it",
  5: "a process of the pod traces others",
};

/** Reaches the guest of a pod: by an exec of its relay, and by another one when that breaks. */
export function linkToPod(client: KubeClient, place: PodPlace, { isFirst, keeps }: ReachOptions = {}): Link {
  let wasAllowed = false;
  let refusals = 0;
  const link = createLink({
    ...(keeps !== undefined && { keeps }),
    async connect(signal) {
      const made = await connect(client, place, signal);
      wasAllowed = true;
      return made;
    },
    verdict(error) {
      const isNew = isFirst === true && link.decoder.environment === undefined;
      if (isNew && error instanceof RelayRefused && ++refusals >= MOST_REFUSALS) {
        return new KubeError("conflict", `The guest in the pod ${place.pod} belongs to somebody who reached it before`);
      }
      // An API server that starts again refuses what it has not yet read the roles for.
      if (wasAllowed && hasStatus(error, 403)) return undefined;
      return isPassing(error) ? undefined : (error as SandboxError);
    },
  });
  return link;
}

/** The guest did not take the connection. */
class RelayRefused extends KubeError {}

async function connect(client: KubeClient, place: PodPlace, signal: AbortSignal): Promise<LinkConnection> {
  const { namespace, pod, container, program } = place;
  const argv = [program, "relay", "attach"];
  let stream: PodStream;
  try {
    stream = await execInPod(client, { namespace, pod, container, argv }, { signal, timeout: CONNECT_TIMEOUT });
  } catch (error) {
    throw await explain(client, place, error, signal);
  }
  stream.on("error", () => undefined); // whoever reads gets it
  return {
    input: outputOf(client, place, stream, signal),
    write: (bytes) => void stream.write(bytes),
    async end() {
      stream.end();
      const late = setTimeout(() => stream.destroy(), END_TIMEOUT);
      await stream.exitCode.catch(() => undefined);
      clearTimeout(late);
    },
    destroy: () => void stream.destroy(),
    ref: () => stream.ref(),
    unref: () => stream.unref(),
  };
}

async function* outputOf(
  client: KubeClient,
  place: PodPlace,
  stream: PodStream,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield* stream as AsyncIterable<Uint8Array>;
    const code = await stream.exitCode;
    const why = stream.complaint || RELAY_FAILURES[code] || `it ended with ${code}`;
    const Kind = code === REFUSED ? RelayRefused : KubeError;
    throw new Kind("unavailable", `The relay in the pod ${place.pod} ended: ${why}`);
  } catch (error) {
    throw await explain(client, place, error, signal);
  }
}

/** An exec fails for many reasons; the cluster knows whether it is because the pod has ended. */
async function explain(client: KubeClient, place: PodPlace, error: unknown, signal: AbortSignal): Promise<unknown> {
  if (signal.aborted) return error;
  const { pod: name, uid } = place;
  return (await podLoss(client, { name, uid }, { signal, timeout: CONNECT_TIMEOUT }).catch(() => undefined)) ?? error;
}

/** Whether another connection may work. */
function isPassing(error: unknown): boolean {
  // Aborted: nothing was heard for so long that it was given up while it was still being made.
  if (!(error instanceof SandboxError) || error.code === "aborted") return true;
  return error.code === "unavailable" && !(error instanceof KubeError && error.status === 404);
}
