import { posix } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import { describe, invalidArgument } from "../../../util/schema.js";
import type { KubernetesPodTemplate } from "./kubernetes-options.js";

/** The container that the sandbox is. */
export const CONTAINER = "sandbox";

type Field = (value: unknown, at: string) => void;
type Fields = Readonly<Record<string, Field>>;

const free: Field = () => undefined;

/** A field that another option sets. */
function elsewhere(option: string): Field {
  return (_value, at) => {
    throw refused(at, `the option ${option} sets it`);
  };
}

/** A field that would weaken the isolation, unless it has a value that doesn't. */
function only(harmless: readonly unknown[], why: string): Field {
  return (value, at) => {
    if (!harmless.includes(value)) throw refused(`${at} ${describe(value)}`, why);
  };
}

const SHARED = "the pod would share it with its node";
const SECURITY = "it weakens the isolation of the sandbox";

/** Fields that are not named here are refused: a later Kubernetes may add some that open a way out. */
const CONTEXT: Fields = {
  allowPrivilegeEscalation: only([false], SECURITY),
  capabilities: checkCapabilities,
  privileged: only([false], SECURITY),
  procMount: only(["Default"], SECURITY),
  readOnlyRootFilesystem: free,
  runAsNonRoot: only([true], "the option kubernetes.user decides"),
  runAsUser: elsewhere("kubernetes.user"),
  runAsGroup: elsewhere("kubernetes.user"),
  seccompProfile: checkProfile,
  appArmorProfile: checkProfile,
  seLinuxOptions: only([], SECURITY),
};

const POD_CONTEXT: Fields = {
  fsGroup: free,
  fsGroupChangePolicy: free,
  supplementalGroups: free,
  supplementalGroupsPolicy: free,
  runAsNonRoot: only([true], "the option kubernetes.user decides"),
  runAsUser: elsewhere("kubernetes.user"),
  runAsGroup: elsewhere("kubernetes.user"),
  seccompProfile: checkProfile,
  appArmorProfile: checkProfile,
  seLinuxOptions: only([], SECURITY),
  sysctls: only([], SECURITY),
};

const VOLUME_MOUNT: Fields = {
  name: checkOwnName,
  mountPath: checkMountPath,
  subPath: free,
  readOnly: free,
  recursiveReadOnly: free,
  mountPropagation: only(["None", "HostToContainer"], SECURITY),
};

const OWN_CONTAINER: Fields = {
  name: only([CONTAINER], `the only container is "${CONTAINER}": services are containers of a task`),
  imagePullPolicy: free,
  securityContext: within(CONTEXT),
  volumeMounts: each(within(VOLUME_MOUNT)),
  image: elsewhere("image"),
  resources: elsewhere("kubernetes.resources"),
  env: elsewhere("env"),
  envFrom: elsewhere("env"),
  workingDir: elsewhere("kubernetes.workDir"),
};

const INIT_CONTAINER: Fields = {
  name: free,
  image: free,
  imagePullPolicy: free,
  command: free,
  args: free,
  env: free,
  envFrom: free,
  workingDir: free,
  resources: free,
  securityContext: within(CONTEXT),
  volumeMounts: each(within(VOLUME_MOUNT)),
  // With it, the container goes on beside the sandbox.
  restartPolicy: only([], "a container beside the sandbox is a container of a task"),
};

const VOLUME: Fields = {
  name: checkOwnName,
  configMap: free,
  csi: free,
  downwardAPI: free,
  emptyDir: free,
  ephemeral: free,
  image: free,
  nfs: free,
  persistentVolumeClaim: free,
  projected: within({ defaultMode: free, sources: each(within({ configMap: free, downwardAPI: free, secret: free })) }),
  secret: free,
};

const SPEC: Fields = {
  affinity: free,
  automountServiceAccountToken: only([false], "no sandbox gets a token of the cluster"),
  containers: each(within(OWN_CONTAINER)),
  dnsConfig: free,
  dnsPolicy: only(["ClusterFirst", "Default", "None"], SECURITY),
  enableServiceLinks: only([false], "it puts addresses of the cluster in the environment"),
  hostAliases: free,
  hostIPC: only([false], SHARED),
  hostNetwork: only([false], SHARED),
  hostPID: only([false], SHARED),
  hostUsers: only([false], SHARED),
  hostname: free,
  imagePullSecrets: free,
  initContainers: each(within(INIT_CONTAINER)),
  nodeName: free,
  nodeSelector: elsewhere("kubernetes.nodeSelector"),
  preemptionPolicy: free,
  priorityClassName: free,
  resourceClaims: free,
  runtimeClassName: elsewhere("kubernetes.runtimeClassName"),
  schedulerName: free,
  schedulingGates: free,
  securityContext: within(POD_CONTEXT),
  serviceAccountName: elsewhere("kubernetes.serviceAccount"),
  shareProcessNamespace: only([false], "the guest must be process 1"),
  tolerations: elsewhere("kubernetes.tolerations"),
  topologySpreadConstraints: free,
  volumes: each(within(VOLUME)),
};

const METADATA: Fields = { labels: checkMarks, annotations: checkMarks };

/** Throws `unsupported` for a template that would weaken the isolation, or that sets what another option sets. */
export function checkPodTemplate(value: unknown, name: string): void {
  within({ metadata: within(METADATA), spec: within(SPEC) })(value, name);
  const { containers = [] } = (value as KubernetesPodTemplate).spec ?? {};
  const { length } = containers as unknown[];
  if (length > 1) throw refused(`${name}.spec.containers with ${length} entries`, "a sandbox is one container");
}

/** Every field must be known; a hoisted function, since the tables above refer to it. */
function within(fields: Fields): Field {
  return (value, at) => {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      throw invalidArgument(at, "an object", value);
    for (const [key, entry] of Object.entries(value)) {
      if (entry === undefined || entry === null) continue;
      const check = Object.hasOwn(fields, key) ? fields[key] : undefined;
      if (check === undefined) throw refused(`${at}.${key}`, "the field is not known to be harmless");
      check(entry, `${at}.${key}`);
    }
  };
}

function each(check: Field): Field {
  return (value, at) => {
    if (!Array.isArray(value)) throw invalidArgument(at, "a list", value);
    for (const [index, entry] of value.entries()) check(entry, `${at}[${index}]`);
  };
}

function checkCapabilities(value: unknown, at: string): void {
  const { add = [], ...rest } = value as { add?: unknown };
  if (Array.isArray(add) && add.length > 0) throw refused(`${at}.add ${describe(add)}`, SECURITY);
  within({ drop: free, add: free })(rest, at);
}

function checkProfile(value: unknown, at: string): void {
  const { type } = value as { type?: unknown };
  if (type !== "RuntimeDefault" && type !== "Localhost") throw refused(`${at}.type ${describe(type)}`, SECURITY);
}

function checkOwnName(value: unknown, at: string): void {
  if (typeof value !== "string") throw invalidArgument(at, "a name", value);
  if (value.startsWith("glovebox-")) throw refused(`${at} "${value}"`, "names that start with glovebox- are ours");
}

function checkMountPath(value: unknown, at: string): void {
  if (typeof value !== "string" || !posix.isAbsolute(value)) throw invalidArgument(at, "an absolute path", value);
  if (/^\/($|(proc|sys|dev|\.glovebox)(\/|$))/.test(posix.normalize(value))) {
    throw refused(`${at} "${value}"`, "it is the kernel's or the guest's");
  }
}

/**
 * Annotations by which runtimes and network plugins are told what a pod's own fields don't say: more interfaces, which no policy restricts, devices of
 * the node, settings of the machine.
 */
const RUNTIMES =
  /^(k8s\.v1\.cni\.cncf\.io|v1\.multus-cni\.io|k8s\.ovn\.org|cdi\.k8s\.io)\/|^(io\.kubernetes\.cri|io\.katacontainers\.|dev\.gvisor\.|run\.oci\.)/;

/** Old clusters read profiles from annotations; and nothing may pretend to be one of our own marks. */
function checkMarks(value: unknown, at: string): void {
  if (typeof value !== "object" || value === null) throw invalidArgument(at, "an object of strings", value);
  for (const [key, text] of Object.entries(value)) {
    if (typeof text !== "string") throw invalidArgument(`${at}.${key}`, "a string", text);
    if (/^(glovebox\/|job-name$|batch\.kubernetes\.io\/|controller-uid$)/.test(key))
      throw refused(`${at}.${key}`, "it is set by us");
    if (RUNTIMES.test(key)) throw refused(`${at}.${key}`, SECURITY);
    const isProfile = /^(container\.apparmor|container\.seccomp|seccomp)\.(security|beta)/.test(key);
    if (isProfile && !/^(runtime\/default|localhost\/.+)$/.test(text))
      throw refused(`${at}.${key} "${text}"`, SECURITY);
  }
}

/** What network plugins write on pods that run: a report, which asks for nothing. */
const REPORTS = /^(k8s\.v1\.cni\.cncf\.io\/networks?-status|k8s\.ovn\.org\/pod-networks)$/;

/** Throws `unsupported` for annotations of a running pod of others that `checkPodTemplate` would refuse in a template. */
export function checkLivePodAnnotations(annotations: Readonly<Record<string, string>>, name: string): void {
  checkMarks(Object.fromEntries(Object.entries(annotations).filter(([key]) => !REPORTS.test(key))), name);
}

function refused(what: string, why: string): SandboxError {
  return new SandboxError("unsupported", `The kubernetes backend refuses ${what}: ${why}`);
}
