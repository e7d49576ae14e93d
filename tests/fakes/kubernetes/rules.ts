import { isIP } from "node:net";
import { invalid } from "./refusal.js";

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LABEL_VALUE = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;
const LABEL_KEY = /^([a-z0-9.-]{1,253}\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const QUANTITY = /^(\d+(?:\.\d+)?)(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/;
const MOST_ANNOTATIONS = 256 << 10;
const MOST_DATA = 1 << 20;

// biome-ignore lint/suspicious/noExplicitAny: the types of all fields were checked before.
type Body = any;
type Faults = string[];

/** Refuses an object that no server would take: names, labels, amounts, and what must be there. */
export function checkRules(kind: string, body: Body): void {
  const faults: Faults = [];
  checkMeta(body.metadata ?? {}, faults, kind === "Job");
  if (kind === "Pod") checkPod(body.spec ?? {}, "spec", faults);
  if (kind === "Job") checkJob(body.spec ?? {}, faults);
  if (kind === "ConfigMap") checkConfigMap(body, faults);
  if (kind === "NetworkPolicy") checkPolicy(body.spec ?? {}, faults);
  if (kind === "PersistentVolumeClaim") checkClaim(body.spec ?? {}, faults);
  if (kind.startsWith("Sandbox")) checkAgentSandbox(kind, body.spec, faults);
  if (faults.length > 0) throw invalid(kind, body.metadata?.name ?? "", ...faults);
}

/** Refuses a change of what can't be changed. */
export function checkChange(kind: string, before: Body, after: Body): void {
  const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
  const faults: Faults = [];
  if (
    kind === "ConfigMap" &&
    before.immutable &&
    !(isSame(before.data, after.data) && isSame(before.binaryData, after.binaryData) && after.immutable)
  ) {
    faults.push("data: Forbidden: field is immutable when `immutable` is set");
  }
  if (kind === "Job" && !isSame(before.spec.template, after.spec.template)) {
    faults.push("spec.template: Invalid value: field is immutable");
  }
  const { activeDeadlineSeconds: _a, tolerations: _t, ...old } = before.spec ?? {};
  const { activeDeadlineSeconds: _b, tolerations: _u, ...now } = after.spec ?? {};
  if (kind === "Pod" && !isSame(old, now)) {
    faults.push(
      "spec: Forbidden: pod updates may not change fields other than `spec.activeDeadlineSeconds` or `spec.tolerations`",
    );
  }
  if (faults.length > 0) throw invalid(kind, before.metadata.name, ...faults);
  checkRules(kind, after);
}

/** An amount of a resource as a number; undefined if it isn't one. */
export function parseQuantity(text: string): number | undefined {
  const [, number, unit = ""] = QUANTITY.exec(text) ?? [];
  if (number === undefined) return undefined;
  const decimal: Readonly<Record<string, number>> = { "": 1, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12 };
  const binary: Readonly<Record<string, number>> = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 };
  return Number(number) * (decimal[unit] ?? binary[unit] ?? Number.NaN);
}

function checkMeta({ name, generateName, labels = {}, annotations = {} }: Body, faults: Faults, isJob: boolean): void {
  const given = name ?? generateName?.replace(/[-.]$/, "");
  if (given !== undefined && (!SUBDOMAIN.test(given) || given.length > 253)) {
    faults.push(
      `metadata.name: Invalid value: "${given}": a DNS-1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'`,
    );
  }
  // The pods of a Job have its name as a label.
  if (isJob && name?.length > 63)
    faults.push("spec.template.labels: Invalid value: must be no more than 63 characters");
  checkLabels(labels, "metadata.labels", faults);
  const size = Object.entries(annotations).reduce((sum, [key, value]) => sum + key.length + String(value).length, 0);
  if (size > MOST_ANNOTATIONS) faults.push("metadata.annotations: Too long: must have at most 262144 bytes");
  for (const key of Object.keys(annotations)) {
    if (!LABEL_KEY.test(key.toLowerCase())) faults.push(`metadata.annotations: Invalid value: "${key}"`);
  }
}

function checkLabels(labels: Readonly<Record<string, string>>, path: string, faults: Faults): void {
  for (const [key, value] of Object.entries(labels)) {
    if (!LABEL_KEY.test(key))
      faults.push(`${path}: Invalid value: "${key}": name part must consist of alphanumeric characters`);
    if (!LABEL_VALUE.test(value) || value.length > 63)
      faults.push(
        `${path}: Invalid value: "${value}": a valid label must be an empty string or consist of alphanumeric characters`,
      );
  }
}

function checkJob(spec: Body, faults: Faults): void {
  if (spec.template === undefined) faults.push("spec.template: Required value");
  for (const name of [
    "parallelism",
    "completions",
    "backoffLimit",
    "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
  ]) {
    if (spec[name] < 0) faults.push(`spec.${name}: Invalid value: ${spec[name]}: must be greater than or equal to 0`);
  }
  if (spec.selector !== undefined && spec.manualSelector !== true)
    faults.push("spec.selector: Invalid value: `selector` not auto-generated");
  const template = spec.template ?? {};
  if (!["Never", "OnFailure"].includes(template.spec?.restartPolicy)) {
    faults.push('spec.template.spec.restartPolicy: Unsupported value: supported values: "OnFailure", "Never"');
  }
  checkLabels(template.metadata?.labels ?? {}, "spec.template.labels", faults);
  checkPod(template.spec ?? {}, "spec.template.spec", faults);
}

function checkPod(spec: Body, path: string, faults: Faults): void {
  const volumes = new Map<string, Body>();
  for (const volume of spec.volumes ?? []) {
    if (!LABEL.test(volume.name ?? "")) faults.push(`${path}.volumes.name: Invalid value: "${volume.name}"`);
    if (volumes.has(volume.name)) faults.push(`${path}.volumes.name: Duplicate value: "${volume.name}"`);
    const sources = Object.keys(volume).filter((key) => key !== "name");
    if (sources.length !== 1) faults.push(`${path}.volumes: Required value: must specify exactly one volume type`);
    const mode = (volume.configMap ?? volume.secret)?.defaultMode;
    if (mode !== undefined && (mode < 0 || mode > 0o777))
      faults.push(`${path}.volumes.defaultMode: Invalid value: ${mode}`);
    volumes.set(volume.name, volume);
  }
  if (!spec.containers?.length) faults.push(`${path}.containers: Required value`);
  const names = new Set<string>();
  for (const container of [...(spec.initContainers ?? []), ...(spec.containers ?? [])]) {
    if (names.has(container.name)) faults.push(`${path}.containers.name: Duplicate value: "${container.name}"`);
    names.add(container.name);
    checkContainer(container, `${path}.containers[${container.name}]`, volumes, faults);
  }
  checkLabels(spec.nodeSelector ?? {}, `${path}.nodeSelector`, faults);
  for (const { operator = "Equal", key, value } of spec.tolerations ?? []) {
    if (!["Equal", "Exists"].includes(operator))
      faults.push(`${path}.tolerations.operator: Unsupported value: "${operator}"`);
    if (operator === "Exists" && value)
      faults.push(`${path}.tolerations.operator: Invalid value: value must be empty when \`operator\` is 'Exists'`);
    if (operator === "Equal" && !key)
      faults.push(`${path}.tolerations.operator: Invalid value: operator must be Exists when \`key\` is empty`);
  }
  if (spec.hostname !== undefined && (!LABEL.test(spec.hostname) || spec.hostname.length > 63))
    faults.push(`${path}.hostname: Invalid value: "${spec.hostname}": a DNS-1123 label must consist of lower case`);
  for (const { ip, hostnames = [] } of spec.hostAliases ?? []) {
    if (isIP(ip) === 0) faults.push(`${path}.hostAliases.ip: Invalid value: "${ip}": must be a valid IP address`);
    for (const name of hostnames)
      if (!SUBDOMAIN.test(name)) faults.push(`${path}.hostAliases.hostnames: Invalid value: "${name}"`);
  }
  if (spec.dnsPolicy === "None" && !(spec.dnsConfig?.nameservers?.length > 0))
    faults.push(
      `${path}.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when \`dnsPolicy\` is None`,
    );
  const profile = spec.securityContext?.seccompProfile?.type;
  if (profile !== undefined && !["RuntimeDefault", "Unconfined", "Localhost"].includes(profile))
    faults.push(`${path}.securityContext.seccompProfile.type: Unsupported value: "${profile}"`);
}

function checkContainer(container: Body, path: string, volumes: ReadonlyMap<string, Body>, faults: Faults): void {
  if (!LABEL.test(container.name ?? "") || container.name.length > 63)
    faults.push(`${path}.name: Invalid value: "${container.name}"`);
  if (!container.image || container.image !== container.image.trim()) faults.push(`${path}.image: Required value`);
  if (!["Always", "IfNotPresent", "Never", undefined].includes(container.imagePullPolicy))
    faults.push(`${path}.imagePullPolicy: Unsupported value`);
  if (!["File", "FallbackToLogsOnError", undefined].includes(container.terminationMessagePolicy))
    faults.push(`${path}.terminationMessagePolicy: Invalid value`);
  const { requests = {}, limits = {} } = container.resources ?? {};
  for (const [name, text] of [...Object.entries(requests), ...Object.entries(limits)]) {
    if (parseQuantity(text as string) === undefined)
      faults.push(
        `${path}.resources: Invalid value: "${text}": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
      );
    if (name.includes("/") ? !LABEL_KEY.test(name) : !["cpu", "memory", "ephemeral-storage"].includes(name))
      faults.push(`${path}.resources: Invalid value: "${name}": must be a standard resource type or fully qualified`);
  }
  for (const [name, text] of Object.entries(requests)) {
    const limit = limits[name] === undefined ? Number.POSITIVE_INFINITY : parseQuantity(limits[name]);
    if ((parseQuantity(text as string) ?? 0) > (limit ?? 0))
      faults.push(`${path}.resources.requests: Invalid value: "${text}": must be less than or equal to ${name} limit`);
  }
  const mounted = new Set<string>();
  for (const { name, mountPath, subPath } of container.volumeMounts ?? []) {
    if (!volumes.has(name)) faults.push(`${path}.volumeMounts.name: Not found: "${name}"`);
    if (!mountPath || mountPath.includes(":"))
      faults.push(`${path}.volumeMounts.mountPath: Invalid value: "${mountPath}"`);
    if (mounted.has(mountPath))
      faults.push(`${path}.volumeMounts.mountPath: Invalid value: "${mountPath}": must be unique`);
    if (subPath?.startsWith("/") || subPath?.split("/").includes(".."))
      faults.push(`${path}.volumeMounts.subPath: Invalid value: "${subPath}"`);
    mounted.add(mountPath);
  }
  for (const { name } of container.env ?? []) {
    if (!/^[-._a-zA-Z][-._a-zA-Z0-9]*$/.test(name ?? "")) faults.push(`${path}.env.name: Invalid value: "${name}"`);
  }
  const context = container.securityContext ?? {};
  if (context.privileged && context.allowPrivilegeEscalation === false)
    faults.push(
      `${path}.securityContext: Invalid value: cannot set \`allowPrivilegeEscalation\` to false and \`privileged\` to true`,
    );
}

function checkConfigMap({ data = {}, binaryData = {} }: Body, faults: Faults): void {
  let size = 0;
  for (const [key, value] of Object.entries<string>(binaryData)) {
    if (!/^[A-Za-z0-9+/]*={0,2}$/.test(value)) faults.push(`binaryData[${key}]: Invalid value: illegal base64 data`);
    size += Buffer.from(value, "base64").length;
  }
  for (const value of Object.values<string>(data)) size += Buffer.byteLength(value);
  for (const key of [...Object.keys(data), ...Object.keys(binaryData)]) {
    if (!/^[-._a-zA-Z0-9]+$/.test(key)) faults.push(`data[${key}]: Invalid value: "${key}"`);
  }
  if (size > MOST_DATA) faults.push(": Too long: must have at most 1048576 bytes");
}

function checkPolicy({ podSelector, policyTypes = [] }: Body, faults: Faults): void {
  if (podSelector === undefined) faults.push("spec.podSelector: Required value");
  for (const type of policyTypes) {
    if (!["Ingress", "Egress"].includes(type)) faults.push(`spec.policyTypes: Unsupported value: "${type}"`);
  }
}

/** As the schemas of agent-sandbox's own definitions say. */
function checkAgentSandbox(kind: string, spec: Body, faults: Faults): void {
  const need = (path: string, value: unknown): void => {
    if (value === undefined) faults.push(`${path}: Required value`);
  };
  const oneOf = (path: string, value: unknown, ...allowed: readonly string[]): void => {
    if (value !== undefined && !allowed.includes(value as string))
      faults.push(`${path}: Unsupported value: "${value}"`);
  };
  need("spec", spec);
  const { lifecycle = {} } = spec ?? {};
  if (kind === "SandboxClaim") need("spec.warmPoolRef.name", spec?.warmPoolRef?.name);
  if (kind === "SandboxWarmPool") need("spec.sandboxTemplateRef.name", spec?.sandboxTemplateRef?.name);
  if (kind === "SandboxTemplate") need("spec.podTemplate.spec", spec?.podTemplate?.spec);
  oneOf("spec.lifecycle.shutdownPolicy", lifecycle.shutdownPolicy, "Delete", "DeleteForeground", "Retain");
  oneOf("spec.networkPolicyManagement", spec?.networkPolicyManagement, "Managed", "Unmanaged");
  oneOf("spec.updateStrategy.type", spec?.updateStrategy?.type, "Recreate", "OnReplenish");
  const { shutdownTime, ttlSecondsAfterFinished = 0 } = lifecycle;
  if (shutdownTime !== undefined && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(shutdownTime))
    faults.push(`spec.lifecycle.shutdownTime: Invalid value: "${shutdownTime}": must be of type date-time`);
  if (ttlSecondsAfterFinished < 0 || (spec?.replicas ?? 0) < 0)
    faults.push("spec: Invalid value: should be greater than or equal to 0");
}

function checkClaim({ accessModes = [], resources }: Body, faults: Faults): void {
  if (accessModes.length === 0) faults.push("spec.accessModes: Required value: at least 1 access mode is required");
  if (resources?.requests?.storage === undefined) faults.push("spec.resources[storage]: Required value");
  else if (parseQuantity(resources.requests.storage) === undefined)
    faults.push("spec.resources[storage]: Invalid value");
}
