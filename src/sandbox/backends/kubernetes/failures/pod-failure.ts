import type { SandboxErrorCode } from "../../../../../contracts/errors.js";
import { KubeError, type KubeErrorDetails } from "../client/kube-error.js";
import type { ContainerState, ContainerStatus, ObjectCondition, Pod } from "../client/resources.js";
import { CONTAINER } from "../pod-template.js";

/** One way in which a pod can fail. */
interface Failure {
  readonly code: SandboxErrorCode;
  /** The cluster's own word. */
  readonly reason: string;
  /** The cluster's own text. */
  readonly message?: string | undefined;
  readonly hint?: string | undefined;
  /** Whether another sandbox may fare better. */
  readonly isPassing?: boolean;
}

const BIGGER = 'give it more: limits: { memory: … }, or kubernetes: { resources: { memory: "4Gi" } }';
const NODE_GONE = "its node is gone; open another sandbox";

/** Reasons in the status of a pod that was ended. */
const ENDED: Readonly<Record<string, Omit<Failure, "reason" | "message">>> = {
  DeadlineExceeded: { code: "limit_exceeded", hint: "its time (option ttl, or the longest life of a sandbox) is over" },
  NodeLost: { code: "backend_lost", hint: NODE_GONE, isPassing: true },
  NodeShutdown: { code: "backend_lost", hint: NODE_GONE, isPassing: true },
  Terminated: { code: "backend_lost", hint: NODE_GONE, isPassing: true },
  Shutdown: { code: "backend_lost", hint: NODE_GONE, isPassing: true },
  Preempting: {
    code: "backend_lost",
    hint: "a pod of a higher priority took its place; see priorityClassName",
    isPassing: true,
  },
  UnexpectedAdmissionError: { code: "unavailable", isPassing: true },
  NodeAffinity: { code: "unavailable", hint: "the node no longer has the labels of nodeSelector", isPassing: true },
};

/** Reasons of the condition DisruptionTarget, which newer clusters set before they end a pod. */
const DISRUPTED: Readonly<Record<string, string>> = {
  PreemptionByScheduler: "a pod of a higher priority took its place; see priorityClassName",
  DeletionByTaintManager: "its node got a taint, as it does when it is lost or drained",
  EvictionByEvictionAPI: "its node is being drained",
  DeletionByPodGC: NODE_GONE,
  TerminationByKubelet: "its node was short of a resource, or is shutting down",
};

/** Reasons for which a container waits in vain. */
const WAITING: Readonly<Record<string, Omit<Failure, "reason" | "message">>> = {
  InvalidImageName: { code: "invalid_argument", hint: "use the name of an image with an optional tag or digest" },
  ErrImageNeverPull: { code: "not_found", hint: "load the image into the node, or let it be pulled (imagePullPolicy)" },
  CreateContainerConfigError: {
    code: "invalid_argument",
    hint: 'see the message; "kubernetes: { user: … }" sets the user',
  },
  CreateContainerError: { code: "invalid_argument" },
  RunContainerError: { code: "invalid_argument" },
};

const PULL = [
  "ErrImagePull",
  "ImagePullBackOff",
  "RegistryUnavailable",
  "ImageInspectError",
  "SignatureValidationFailed",
];

/** Why a pod can't start or has ended, with the cluster's own reason; undefined while it starts or runs. */
export function podFailure(pod: Pod): KubeError | undefined {
  const found = ended(pod) ?? disrupted(pod) ?? container(pod) ?? over(pod);
  return found === undefined ? undefined : toError(pod, found);
}

/** Why a pod waits for a node, in the scheduler's words; undefined when it has one. It may still get one: nodes are added, pods end. */
export function schedulingDelay(pod: Pod): KubeError | undefined {
  const scheduled = conditionOf(pod, "PodScheduled");
  if (pod.spec?.nodeName !== undefined || scheduled?.status !== "False") return undefined;
  const hint = "make room or add nodes, or ask for less: limits, kubernetes.resources, nodeSelector, tolerations";
  return toError(pod, {
    code: "unavailable",
    reason: scheduled.reason ?? "Unschedulable",
    message: scheduled.message,
    hint,
    isPassing: true,
  });
}

/** Whether the sandbox's container runs. */
export function isRunning(pod: Pod): boolean {
  return (
    pod.status?.phase === "Running" &&
    pod.metadata.deletionTimestamp === undefined &&
    ownStatus(pod)?.state?.running !== undefined
  );
}

function ended({ status = {} }: Pod): Failure | undefined {
  const { phase, reason, message } = status;
  if (phase !== "Failed" || reason === undefined) return undefined;
  if (reason === "Evicted") return evicted(message);
  const known = ENDED[reason] ?? (/^(OutOf|Node)/.test(reason) ? OUT_OF : undefined);
  return known && { ...known, reason, message };
}

/** Such as OutOfcpu: the scheduler and the kubelet did not agree. */
const OUT_OF = { code: "unavailable", hint: "the node was full; try again", isPassing: true } as const;

function evicted(message = ""): Failure {
  const own =
    /exceeded its local ephemeral storage limit|ephemeral local storage usage exceeds|exceeds its? limit/i.test(
      message,
    );
  const reason = "Evicted";
  if (own || /EmptyDir/.test(message)) {
    const hint = 'give it more: kubernetes: { resources: { "ephemeral-storage": "10Gi" } }';
    return { code: "no_space", reason, message, hint };
  }
  return { code: "backend_lost", reason, message, hint: "its node ran out of a resource", isPassing: true };
}

function disrupted(pod: Pod): Failure | undefined {
  const target = conditionOf(pod, "DisruptionTarget");
  if (target?.status !== "True") return undefined;
  const { reason = "DisruptionTarget", message } = target;
  return { code: "backend_lost", reason, message, hint: DISRUPTED[reason], isPassing: true };
}

function container(pod: Pod): Failure | undefined {
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  for (const status of [...initContainerStatuses, ...containerStatuses]) {
    const { state = {}, lastState = {} } = status;
    const found = waiting(status, state) ?? terminated(status, state) ?? terminated(status, lastState);
    if (found !== undefined) return found;
  }
  return undefined;
}

function waiting({ image }: ContainerStatus, { waiting: state }: ContainerState): Failure | undefined {
  const { reason = "", message } = state ?? {};
  const known = WAITING[reason];
  if (known !== undefined) return { ...known, reason, message };
  if (!PULL.includes(reason)) return undefined;
  return { ...pullFailure(message ?? "", image), reason, message };
}

function pullFailure(message: string, image = "the image"): Omit<Failure, "reason" | "message"> {
  if (/not found|manifest unknown|does not exist|no such/i.test(message)) {
    return { code: "not_found", hint: `check the name ${image}: the nodes of the cluster pull it, not this machine` };
  }
  if (/unauthorized|authentication|denied|forbidden|no basic auth/i.test(message)) {
    const hint =
      'give the pod a pull secret: kubernetes: { podTemplate: { spec: { imagePullSecrets: [{ name: "…" }] } } }';
    return { code: "unauthenticated", hint };
  }
  return { code: "unavailable", hint: `the nodes of the cluster can't pull ${image} now`, isPassing: true };
}

function terminated({ name }: ContainerStatus, { terminated: state }: ContainerState): Failure | undefined {
  if (state === undefined || (state.exitCode === 0 && name !== CONTAINER)) return undefined;
  const { reason = `exit code ${state.exitCode}`, message } = state;
  const said = message?.trim() || `the container ${name} exited with ${state.exitCode}`;
  if (reason === "OOMKilled")
    return { code: "limit_exceeded", reason, message: `it used more memory than its limit (${said})`, hint: BIGGER };
  if (/exec format error/.test(said)) {
    const hint = 'name the architecture of the nodes: kubernetes: { nodeSelector: { "kubernetes.io/arch": "arm64" } }';
    return { code: "invalid_argument", reason, message: said, hint };
  }
  if (["StartError", "ContainerCannotRun"].includes(reason)) return { code: "invalid_argument", reason, message: said };
  if (reason === "ContainerStatusUnknown")
    return { code: "backend_lost", reason, message: said, hint: NODE_GONE, isPassing: true };
  if (name !== CONTAINER)
    return { code: "invalid_argument", reason, message: `the init container ${name} failed: ${said}` };
  return { code: "backend_lost", reason, message: said };
}

/** The rest: it is being deleted, or nobody knows about it. */
function over({ metadata, status }: Pod): Failure | undefined {
  if (metadata.deletionTimestamp !== undefined)
    return { code: "backend_lost", reason: "Deleted", message: "somebody deleted it" };
  const phase = status?.phase;
  if (phase === "Unknown")
    return { code: "backend_lost", reason: "NodeLost", message: status?.message, hint: NODE_GONE, isPassing: true };
  if (phase === "Failed" || phase === "Succeeded") {
    return { code: "backend_lost", reason: status?.reason ?? phase, message: status?.message };
  }
  return undefined;
}

function toError({ metadata, spec }: Pod, { code, reason, message, hint, isPassing = false }: Failure): KubeError {
  const node = spec?.nodeName === undefined ? "" : ` on the node ${spec.nodeName}`;
  const said = message === undefined || message === "" ? "" : `: ${message.trim()}`;
  const details: KubeErrorDetails = { reason, hint, retryable: isPassing };
  return new KubeError(code, `Kubernetes: the pod ${metadata.name}${node}: ${reason}${said}`, details);
}

function conditionOf({ status }: Pod, type: string): ObjectCondition | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}

function ownStatus({ status }: Pod): ContainerStatus | undefined {
  return status?.containerStatuses?.find(({ name }) => name === CONTAINER);
}
