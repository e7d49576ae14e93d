import type { Limits } from "../../../../../contracts/types.js";
import type { KubernetesOptions } from "../kubernetes-options.js";
import { NETWORK_LABEL } from "../labels.js";
import { userOf } from "../options.js";
import { CONTAINER } from "../pod-template.js";
import { ARCHITECTURES, PROGRAM } from "./guest-config-map.js";
import type { PodNetwork } from "./network-policy.js";

/** Where the guest is in a pod. */
const FOLDER = "/.glovebox";
export const GUEST_PATH: string = `${FOLDER}/${PROGRAM}`;
/** The home directory of a user that the image may not know. */
export const HOME_PATH = "/home/sandbox";
const HOST_ARCHITECTURE = "kubernetes.io/arch";

/** How long a Job that has ended stays, in seconds: long enough to read why. */
const AFTER_END = 60;
const DEFAULT_RESOURCES = { cpu: "1", memory: "2Gi" };

/** Everything about the pod of a sandbox. Plain data, which is recorded to make it again. */
export interface PodPlan {
  /** Of the Job. Chosen before it is made, so that it can be found even if that call fails. */
  readonly name: string;
  readonly namespace: string;
  readonly image: string;
  /** The ConfigMap with the guest. */
  readonly guest: string;
  /** The arguments of the guest. */
  readonly argv: readonly string[];
  readonly workDir: string;
  readonly limits: Limits;
  /** What a list of names allows goes through the guest's channel, over `none`. `unrestricted` is only for a canary. */
  readonly network: PodNetwork | "unrestricted";
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** When the cluster ends the pod whatever happens, in seconds after its start. Absent: never. */
  readonly deadline?: number;
  readonly options: Omit<KubernetesOptions, "kubeconfig" | "context" | "warmPool">;
  /** For a container of a task. */
  readonly task?: TaskPod;
}

/** How the pod of a task's container differs from that of a sandbox: all of it is the sandbox, with the user and the directories of its image. */
export interface TaskPod {
  /** The name that it has for itself. */
  readonly hostname: string;
  /** Names of other pods, by their addresses. */
  readonly hosts: Readonly<Record<string, readonly string[]>>;
  /** Whether it reaches nothing but pods of its task, so that no name server is of any use. */
  readonly isInternal: boolean;
  /** Whether the cluster lets a pod bind the ports below 1024 without a capability. */
  readonly hasLowPorts: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

/** The architecture of the nodes that a pod with these options can run on. */
export function architectureOf({ nodeSelector = {} }: Pick<KubernetesOptions, "nodeSelector">): string {
  return nodeSelector[HOST_ARCHITECTURE] ?? Object.keys(ARCHITECTURES)[0] ?? "";
}

/** The body of the call that makes the Job of a sandbox. A Job, since the cluster itself removes one that has ended. */
export function jobManifest(plan: PodPlan): object {
  const { name, labels, annotations, deadline } = plan;
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name, labels, annotations },
    spec: {
      // A second pod would be another sandbox.
      backoffLimit: 0,
      completions: 1,
      parallelism: 1,
      ttlSecondsAfterFinished: AFTER_END,
      ...(deadline !== undefined && { activeDeadlineSeconds: deadline }),
      template: podManifest(plan),
    },
  };
}

/** The pod of a sandbox, as a template. */
export function podManifest(plan: PodPlan): { metadata: object; spec: object } {
  const { options, network } = plan;
  const template = options.podTemplate ?? {};
  const { containers, initContainers, volumes, securityContext, ...spec } = (template.spec ?? {}) as Fields;
  const user = userOfPod(plan);
  const own = ((containers ?? []) as Fields[])[0] ?? {};
  return {
    metadata: {
      labels: { ...template.metadata?.labels, ...plan.labels, [NETWORK_LABEL]: network },
      annotations: { ...template.metadata?.annotations, ...plan.annotations },
    },
    spec: {
      ...spec,
      restartPolicy: "Never",
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      shareProcessNamespace: false,
      hostNetwork: false,
      hostPID: false,
      hostIPC: false,
      // The guest ends everything itself; nothing listens to a SIGTERM.
      terminationGracePeriodSeconds: 0,
      ...(options.serviceAccount !== undefined && { serviceAccountName: options.serviceAccount }),
      ...(options.runtimeClassName !== undefined && { runtimeClassName: options.runtimeClassName }),
      ...(options.tolerations !== undefined && { tolerations: options.tolerations }),
      nodeSelector: {
        "kubernetes.io/os": "linux",
        [HOST_ARCHITECTURE]: architectureOf(options),
        ...options.nodeSelector,
      },
      securityContext: {
        seccompProfile: { type: "RuntimeDefault" },
        ...(securityContext as Fields | undefined),
        ...(user !== undefined && { runAsUser: user.uid, runAsGroup: user.gid }),
        ...(user !== undefined && user.uid !== 0 && { runAsNonRoot: true }),
        ...(plan.task?.hasLowPorts === true && {
          sysctls: [{ name: "net.ipv4.ip_unprivileged_port_start", value: "0" }],
        }),
      },
      ...(plan.task && names(plan.task, spec)),
      containers: [containerManifest(plan, own)],
      ...(initContainers !== undefined && {
        initContainers: (initContainers as Fields[]).map((container) => ({
          ...container,
          securityContext: confined(container["securityContext"]),
        })),
      }),
      volumes: [...((volumes ?? []) as Fields[]), ...ownVolumes(plan)],
    },
  };
}

function containerManifest(plan: PodPlan, template: Fields): object {
  const resources = resourcesOf(plan);
  return {
    imagePullPolicy: "IfNotPresent",
    ...template,
    name: CONTAINER,
    image: plan.image,
    command: [GUEST_PATH, ...plan.argv],
    args: [],
    // The guest says where the image's own commands start.
    ...(plan.task === undefined && { workingDir: "/" }),
    // What is requested is also the limit: a sandbox never takes what another one was promised.
    resources: { requests: resources, limits: resources },
    securityContext: confined(template["securityContext"]),
    volumeMounts: [...((template["volumeMounts"] ?? []) as Fields[]), ...ownMounts(plan)],
    terminationMessagePolicy: "FallbackToLogsOnError",
  };
}

function confined(template: unknown): object {
  return {
    ...(template as Fields | undefined),
    privileged: false,
    allowPrivilegeEscalation: false,
    capabilities: { drop: ["ALL"] },
  };
}

function resourcesOf({ limits, options }: PodPlan): Record<string, string> {
  return {
    ...DEFAULT_RESOURCES,
    ...(limits.cpus !== undefined && { cpu: `${Math.max(1, Math.round(limits.cpus * 1_000))}m` }),
    ...(limits.memory !== undefined && { memory: String(limits.memory) }),
    ...options.resources,
  };
}

/** Undefined: that of the image. */
function userOfPod({ options, task }: Pick<PodPlan, "options" | "task">): { uid: number; gid: number } | undefined {
  return task !== undefined && options.user === undefined ? undefined : userOf(options);
}

/** What a pod finds by name, without any name server: itself, and the pods of its task that are there already. */
function names({ hostname, hosts, isInternal }: TaskPod, { hostAliases }: Fields): object {
  // The name of a pod has no dots.
  const isLabel = !hostname.includes(".");
  const known = Object.entries(hosts).map(([ip, hostnames]) => ({ ip, hostnames }));
  const own = isLabel ? [] : [{ ip: "127.0.0.1", hostnames: [hostname] }];
  return {
    ...(isLabel && { hostname }),
    hostAliases: [...((hostAliases ?? []) as object[]), ...own, ...known],
    // Otherwise every unknown name would wait for an answer that no policy lets through.
    ...(isInternal && { dnsPolicy: "None", dnsConfig: { nameservers: ["127.0.0.1"] } }),
  };
}

/** Whether the work directory and the home directory are a volume. Root can change the image's own directories. Anybody else gets empty ones, since the image's belong to root. */
export function hasOwnDirectories({ options, task }: Pick<PodPlan, "options" | "task">): boolean {
  return task === undefined && userOf(options).uid !== 0;
}

function ownVolumes(plan: PodPlan): object[] {
  // Executable and nothing else: then no process can look into the guest from its first instruction on.
  const guest = { name: "glovebox-guest", configMap: { name: plan.guest, defaultMode: 0o111 } };
  if (!hasOwnDirectories(plan)) return [guest];
  return [guest, { name: "glovebox-files", emptyDir: {} }];
}

function ownMounts(plan: PodPlan): object[] {
  const guest = { name: "glovebox-guest", mountPath: FOLDER, readOnly: true };
  if (!hasOwnDirectories(plan)) return [guest];
  return [
    guest,
    { name: "glovebox-files", mountPath: plan.workDir, subPath: "work" },
    { name: "glovebox-files", mountPath: HOME_PATH, subPath: "home" },
  ];
}
