import { expect, test } from "vitest";
import { podManifest } from "../../../../src/sandbox/backends/kubernetes/manifests/job.js";
import { podDifference } from "../../../../src/sandbox/backends/kubernetes/warm/same-pod.js";

// biome-ignore lint/suspicious/noExplicitAny: each case changes another part of a pod.
type Spec = any;

function wanted(options: object = {}): Spec {
  const plan = {
    ...{ name: "pool", namespace: "team", image: "debian", guest: "guest-1", argv: ["serve"], workDir: "/workspace" },
    ...{ limits: { memory: 2 ** 30, cpus: 1 }, network: "none" as const, labels: {}, annotations: {} },
  };
  const resources = { "ephemeral-storage": "1.5Gi" };
  return podManifest({ ...plan, options: { resources, ...options } }).spec;
}

/** As a server has it that has filled everything in. */
function served(options: object = {}): Spec {
  const spec = structuredClone(wanted(options));
  const [container] = spec.containers;
  const resources = { cpu: "1", memory: "1Gi", "ephemeral-storage": "1536Mi" };
  Object.assign(container, {
    terminationMessagePath: "/dev/termination-log",
    resources: { requests: resources, limits: resources },
  });
  delete container.args;
  const stay = { operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 };
  return {
    ...spec,
    ...{ dnsPolicy: "ClusterFirst", schedulerName: "default-scheduler", nodeName: "node-1", priority: 0 },
    ...{ serviceAccount: "default", serviceAccountName: "default", preemptionPolicy: "PreemptLowerPriority" },
    ...{ hostNetwork: undefined, hostPID: undefined, hostIPC: undefined, shareProcessNamespace: undefined },
    tolerations: [...(spec.tolerations ?? []), { key: "node.kubernetes.io/not-ready", ...stay }],
  };
}

test.each([
  ["with the defaults", {}],
  ["with tolerations and a runtime", { tolerations: [{ key: "gpu", operator: "Exists" }], runtimeClassName: "kata" }],
  ["as root", { user: "0" }],
])("a pod that the server has filled in is the same %s", (_, options) => {
  expect(podDifference(served(options), wanted(options))).toBeUndefined();
});

test("a runtime may place its pods", () => {
  const options = { runtimeClassName: "kata" };
  const placed = { ...served(options), overhead: { cpu: "250m" } };
  placed.nodeSelector = { ...placed.nodeSelector, kata: "yes" };
  expect(podDifference(placed, wanted(options))).toBeUndefined();
});

const token = { projected: { sources: [{ serviceAccountToken: { path: "token" } }] } };

test.each<[string, (spec: Spec, container: Spec) => unknown, RegExp]>([
  ["privileged", (_, own) => (own.securityContext.privileged = true), /privileged is true, not false/],
  ["a capability", (_, own) => (own.securityContext.capabilities.add = ["NET_ADMIN"]), /capabilities is .*NET_ADMIN/],
  ["capabilities that stay", (_, own) => delete own.securityContext.capabilities, /capabilities is absent/],
  ["escalation", (_, own) => delete own.securityContext.allowPrivilegeEscalation, /allowPrivilegeEscalation is absent/],
  ["no filter", (spec) => (spec.securityContext.seccompProfile.type = "Unconfined"), /seccompProfile is .*Unconfined/],
  ["an unmasked /proc", (_, own) => (own.securityContext.procMount = "Unmasked"), /procMount/],
  ["a token", (spec) => (spec.automountServiceAccountToken = true), /automountServiceAccountToken is true, not false/],
  ["a default token", (spec) => delete spec.automountServiceAccountToken, /automountServiceAccountToken is true, not/],
  ["a token as a volume", (spec) => spec.volumes.push({ name: "aws", ...token }), /volumes has "aws"/],
  [
    "the node's files",
    (spec) => (spec.volumes[1] = { name: "glovebox-files", hostPath: { path: "/" } }),
    /volumes\[1\]/,
  ],
  [
    "another guest",
    (spec) => (spec.volumes[0].configMap.name = "guest-0"),
    /configMap.name is "guest-0", not "guest-1"/,
  ],
  ["a guest to read", (spec) => (spec.volumes[0].configMap.defaultMode = 0o555), /defaultMode is 365, not 73/],
  ["a mount", (_, own) => own.volumeMounts.push({ name: "x", mountPath: "/x" }), /volumeMounts has "x"/],
  ["no mount", (_, own) => own.volumeMounts.pop(), /volumeMounts\[2\] is absent/],
  ["a sidecar", (spec) => spec.containers.push({ name: "proxy" }), /containers has "proxy"/],
  ["an init container", (spec) => (spec.initContainers = [{ name: "setup" }]), /initContainers has "setup"/],
  ["a debug container", (spec) => (spec.ephemeralContainers = [{ name: "debug" }]), /ephemeralContainers/],
  ["the node's network", (spec) => (spec.hostNetwork = true), /hostNetwork is true, not false/],
  ["the node's processes", (spec) => (spec.hostPID = true), /hostPID/],
  ["a shared /proc", (spec) => (spec.shareProcessNamespace = true), /shareProcessNamespace/],
  ["a restart", (spec) => delete spec.restartPolicy, /restartPolicy is "Always", not "Never"/],
  ["another image", (_, own) => (own.image = "alpine"), /image is "alpine", not "debian"/],
  ["another command", (_, own) => own.command.push("x"), /command/],
  ["an argument", (_, own) => (own.args = ["x"]), /args/],
  ["variables", (_, own) => (own.env = [{ name: "A", value: "b" }]), /env/],
  [
    "more memory",
    (_, own) => (own.resources.limits = { ...own.resources.limits, memory: "2Gi" }),
    /limits.memory is "2Gi"/,
  ],
  ["no limit", (_, own) => (own.resources.limits = { cpu: "1" }), /limits.memory is absent|limits.ephemeral/],
  ["another user", (spec) => (spec.securityContext.runAsUser = 0), /runAsUser is 0, not 1000/],
  ["its own user", (_, own) => (own.securityContext.runAsUser = 0), /securityContext.runAsUser is 0, not absent/],
  ["a runtime", (spec) => (spec.runtimeClassName = "runc"), /runtimeClassName is "runc", not absent/],
  ["an account", (spec) => (spec.serviceAccountName = "admin"), /serviceAccountName is "admin", not "default"/],
  ["other nodes", (spec) => (spec.nodeSelector.pool = "open"), /nodeSelector/],
  ["an affinity", (spec) => (spec.affinity = { nodeAffinity: {} }), /affinity/],
  ["what nobody knows yet", (spec) => (spec.hostEverything = true), /hostEverything is true, not absent/],
])("a pod with %s is another one", (_, change, why) => {
  const spec = served();
  change(spec, spec.containers[0]);
  expect(podDifference(spec, wanted())).toMatch(why);
});

test("what was asked for must be there", () => {
  const affinity = { nodeAffinity: {} };
  const options = { podTemplate: { spec: { affinity, priorityClassName: "low" } }, runtimeClassName: "kata" };
  expect(podDifference(served(), wanted(options))).toMatch(
    /priorityClassName is absent|affinity is absent|runtimeClassName/,
  );
  const toleration = { key: "gpu", operator: "Exists" };
  expect(podDifference(served(), wanted({ tolerations: [toleration] }))).toMatch(/tolerations/);
  const spec = { ...served({ runtimeClassName: "kata" }), nodeSelector: {} };
  expect(podDifference(spec, wanted({ runtimeClassName: "kata" }))).toMatch(/nodeSelector.kubernetes.io\/os is absent/);
});
