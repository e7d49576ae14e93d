import { describe, expect, test } from "vitest";
import type { SandboxError } from "../../../../contracts/errors.js";
import type { KubernetesOptions } from "../../../../src/sandbox/backends/kubernetes/kubernetes-options.js";
import { jobManifest, type PodPlan, podManifest } from "../../../../src/sandbox/backends/kubernetes/manifests/job.js";
import { checkPossible, kubernetesOptions } from "../../../../src/sandbox/backends/kubernetes/options.js";

const container = (more: object): object => ({ containers: [{ name: "sandbox", ...more }] });
const volume = (source: object): object => ({ volumes: [{ name: "v", ...source }] });
const init = (more: object): object => ({ initContainers: [{ name: "first", image: "busybox", ...more }] });

function refusal(options: object): SandboxError | undefined {
  try {
    kubernetesOptions.parse(options);
    return undefined;
  } catch (error) {
    return error as SandboxError;
  }
}

describe("a pod template is refused with", () => {
  test.each<[string, object]>([
    ["a privileged container", container({ securityContext: { privileged: true } })],
    ["more privileges than the parent", container({ securityContext: { allowPrivilegeEscalation: true } })],
    ["an added capability", container({ securityContext: { capabilities: { add: ["NET_ADMIN"] } } })],
    ["no seccomp filter", container({ securityContext: { seccompProfile: { type: "Unconfined" } } })],
    ["no seccomp filter for the pod", { securityContext: { seccompProfile: { type: "Unconfined" } } }],
    ["no AppArmor profile", container({ securityContext: { appArmorProfile: { type: "Unconfined" } } })],
    ["an SELinux label", { securityContext: { seLinuxOptions: { type: "spc_t" } } }],
    ["an unmasked /proc", container({ securityContext: { procMount: "Unmasked" } })],
    ["kernel settings", { securityContext: { sysctls: [{ name: "kernel.msgmax", value: "1" }] } }],
    ["another user", { securityContext: { runAsUser: 0 } }],
    ["the node's network", { hostNetwork: true }],
    ["the node's processes", { hostPID: true }],
    ["the node's IPC", { hostIPC: true }],
    ["one namespace for the processes of all containers", { shareProcessNamespace: true }],
    ["a path of the node", volume({ hostPath: { path: "/" } })],
    ["a volume that runs git on the node", volume({ gitRepo: { repository: "x" } })],
    ["a driver on the node", volume({ flexVolume: { driver: "x" } })],
    ["a token", { automountServiceAccountToken: true }],
    ["a projected token", volume({ projected: { sources: [{ serviceAccountToken: { path: "t" } }] } })],
    ["a sidecar", { containers: [{ name: "sandbox" }, { name: "other", image: "busybox" }] }],
    ["another container", { containers: [{ name: "other", image: "busybox" }] }],
    ["a sidecar among the init containers", init({ restartPolicy: "Always" })],
    ["a privileged init container", init({ securityContext: { privileged: true } })],
    ["an ephemeral container", { ephemeralContainers: [{ name: "x" }] }],
    ["a command of its own", container({ command: ["sh"] })],
    ["a hook", container({ lifecycle: { postStart: { exec: { command: ["sh"] } } } })],
    ["a probe that runs commands", container({ livenessProbe: { exec: { command: ["sh"] } } })],
    ["a port of the node", container({ ports: [{ hostPort: 80, containerPort: 80 }] })],
    ["a mount over the guest", container({ volumeMounts: [{ name: "v", mountPath: "/x/../.glovebox" }] })],
    [
      "a mount that spreads",
      container({ volumeMounts: [{ name: "v", mountPath: "/x", mountPropagation: "Bidirectional" }] }),
    ],
    ["a volume that pretends to be ours", { volumes: [{ name: "glovebox-guest", emptyDir: {} }] }],
    ["a field that nobody knows", { hostFuture: true }],
    ["a field that is a key of every object", { constructor: {} }],
  ])("%s", (_, spec) => {
    expect(refusal({ podTemplate: { spec } })).toMatchObject({ code: "unsupported" });
  });

  test.each([
    { annotations: { "container.apparmor.security.beta.kubernetes.io/sandbox": "unconfined" } },
    { annotations: { "seccomp.security.alpha.kubernetes.io/pod": "unconfined" } },
    { annotations: { "k8s.v1.cni.cncf.io/networks": "storage" } },
    { annotations: { "io.kubernetes.cri-o.Devices": "/dev/fuse" } },
    { annotations: { "io.katacontainers.config.hypervisor.kernel_params": "x" } },
    { annotations: { "cdi.k8s.io/gpu": "vendor.com/gpu=all" } },
    { annotations: { "glovebox/owner": "me" } },
    { labels: { "glovebox/network": "unrestricted" } },
    { labels: { "job-name": "other" } },
    { finalizers: ["x"] },
  ])("the metadata %o", (metadata) => {
    expect(refusal({ podTemplate: { metadata } })).toMatchObject({ code: "unsupported" });
  });

  test("a list in the place of an object", () => {
    expect(refusal({ podTemplate: { spec: [] } })).toMatchObject({ code: "invalid_argument" });
    expect(refusal({ podTemplate: { spec: { volumes: {} } } })).toMatchObject({ code: "invalid_argument" });
  });
});

const PLAN: PodPlan = {
  name: "glovebox-x",
  namespace: "team",
  image: "busybox",
  guest: "glovebox-guest-amd64-1",
  argv: ["serve"],
  workDir: "/workspace",
  limits: {},
  network: "none",
  labels: { "glovebox/sandbox": "x" },
  annotations: { "glovebox/owner": "[]" },
  options: {},
};

type PodSpec = {
  containers: {
    securityContext: object;
    resources: { requests: object; limits: object };
    volumeMounts: { mountPath: string }[];
  }[];
  securityContext: object;
  volumes: { name: string; emptyDir?: object; configMap?: object }[];
  nodeSelector: object;
};
const specOf = (more: Partial<PodPlan> = {}): PodSpec => podManifest({ ...PLAN, ...more }).spec as PodSpec;

describe("the pod of a sandbox", () => {
  test("has no privileges, no token and no second pod", () => {
    const { spec } = jobManifest({ ...PLAN, deadline: 60 }) as { spec: object };
    expect(spec).toMatchObject({ backoffLimit: 0, completions: 1, parallelism: 1, activeDeadlineSeconds: 60 });
    expect(spec).toHaveProperty("ttlSecondsAfterFinished");
    expect(specOf()).toMatchObject({
      restartPolicy: "Never",
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      hostNetwork: false,
      hostPID: false,
      hostIPC: false,
      shareProcessNamespace: false,
      securityContext: {
        runAsUser: 1000,
        runAsGroup: 1000,
        runAsNonRoot: true,
        seccompProfile: { type: "RuntimeDefault" },
      },
    });
    expect(specOf().containers[0]?.securityContext).toEqual({
      privileged: false,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
    });
  });

  test("is not weakened by any template that is taken", () => {
    const template = {
      metadata: { labels: { team: "blue" }, annotations: { note: "x" } },
      spec: {
        priorityClassName: "low",
        securityContext: { supplementalGroups: [5] },
        containers: [{ name: "sandbox", imagePullPolicy: "Always", securityContext: { readOnlyRootFilesystem: true } }],
        initContainers: [{ name: "first", image: "busybox" }],
        volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }],
      },
    };
    expect(refusal({ podTemplate: template })).toBeUndefined();
    const pod = podManifest({ ...PLAN, options: { podTemplate: template } });
    expect(pod.metadata).toMatchObject({
      labels: { team: "blue", "glovebox/sandbox": "x", "glovebox/network": "none" },
      annotations: { note: "x", "glovebox/owner": "[]" },
    });
    expect(pod.spec).toMatchObject({
      priorityClassName: "low",
      securityContext: { supplementalGroups: [5], runAsUser: 1000 },
      containers: [
        {
          imagePullPolicy: "Always",
          securityContext: { readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } },
        },
      ],
      initContainers: [{ securityContext: { privileged: false, capabilities: { drop: ["ALL"] } } }],
      volumes: [{ name: "data" }, { name: "glovebox-guest" }, { name: "glovebox-files" }],
    });
  });

  test("requests what it is limited to", () => {
    const resources = (options: KubernetesOptions, limits = {}): object | undefined =>
      specOf({ options, limits }).containers[0]?.resources;
    expect(resources({})).toEqual({ requests: { cpu: "1", memory: "2Gi" }, limits: { cpu: "1", memory: "2Gi" } });
    const own = { cpu: "250m", memory: "268435456", "nvidia.com/gpu": "1" };
    expect(resources({ resources: { "nvidia.com/gpu": "1" } }, { cpus: 0.25, memory: 256 << 20 })).toEqual({
      requests: own,
      limits: own,
    });
  });

  test("works in the image's own directories as root, and in empty ones as anybody else", () => {
    const paths = (user?: string): (string | undefined)[] =>
      specOf({ options: user === undefined ? {} : { user } }).containers[0]?.volumeMounts.map(
        ({ mountPath }) => mountPath,
      ) ?? [];
    expect(paths()).toEqual(["/.glovebox", "/workspace", "/home/sandbox"]);
    expect(paths("0")).toEqual(["/.glovebox"]);
    expect(specOf({ options: { user: "7:8" } }).securityContext).toMatchObject({ runAsUser: 7, runAsGroup: 8 });
    expect(specOf({ options: { user: "0" } }).securityContext).not.toHaveProperty("runAsNonRoot");
  });

  test("gets its guest executable and nothing else", () => {
    const [guest] = specOf().volumes;
    expect(guest).toEqual({ name: "glovebox-guest", configMap: { name: PLAN.guest, defaultMode: 0o111 } });
    expect(specOf().securityContext).not.toHaveProperty("fsGroup");
  });

  test("runs on nodes of the guest's kind", () => {
    expect(specOf().nodeSelector).toEqual({ "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" });
    const options = { nodeSelector: { "kubernetes.io/arch": "arm64", pool: "x" } };
    expect(specOf({ options }).nodeSelector).toMatchObject({ "kubernetes.io/arch": "arm64", pool: "x" });
  });
});

describe("the options", () => {
  test.each<[string, object]>([
    ["namespace", { namespace: "No" }],
    ["resources.cpu", { resources: { cpu: "much" } }],
    ["user", { user: "root" }],
    ["lease", { lease: 500 }],
    ["workDir", { workDir: "relative" }],
    ["workDir", { workDir: "/.glovebox/x" }],
    ["image", { image: "No Image" }],
    ["tolerations", { tolerations: [{ operator: "Sometimes" }] }],
  ])("name %s in the refusal of %o", (name, options) => {
    const error = refusal(options);
    expect(error).toMatchObject({ code: "invalid_argument" });
    expect(error?.message).toContain(name);
  });

  test.each<[string, object, string]>([
    ["limits.pids", { limits: { pids: 10 } }, "unsupported"],
    ["limits.disk", { limits: { disk: 1 << 30 } }, "unsupported"],
    ["baseDir", { baseDir: "/x" }, "unsupported"],
    ["workspace", { workspace: "overlay" }, "unsupported"],
    ["host paths", { mounts: [{ source: "/srv" }] }, "unsupported"],
    [
      "limits.memory",
      { limits: { memory: 1 << 30 }, kubernetes: { resources: { memory: "1Gi" } } },
      "invalid_argument",
    ],
    ["image", { image: "a", kubernetes: { image: "b" } }, "invalid_argument"],
  ])("of a sandbox that can't be enforced are refused: %s", (words, options, code) => {
    let refused: SandboxError | undefined;
    try {
      checkPossible(options);
    } catch (error) {
      refused = error as SandboxError;
    }
    expect(refused).toMatchObject({ code });
    expect(refused?.message).toContain(words);
  });

  test("that other words mean lead to the right one", () => {
    expect(refusal({ serviceAccountName: "x" })?.hint).toContain("kubernetes.serviceAccount");
    expect(refusal({ hostNetwork: true })?.hint).toContain("network");
  });
});
