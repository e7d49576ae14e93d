import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import type { Backend } from "../../../contracts/backend.js";
import { SandboxError } from "../../../contracts/errors.js";
import type { SandboxOptions } from "../../../contracts/sandbox.js";
import type { Limits, NetworkPolicy } from "../../../contracts/types.js";
import { isWithin } from "../../machine/system-folders.js";
import { globToRegExp } from "../../util/glob.js";
import { entryText, firstBeyond } from "../egress.js";
import type { Policy } from "./policies.js";
import type { Bound, PolicyFile } from "./policy-schema.js";
import { toBytes, toMilliseconds } from "./quantity.js";

/** What a policy looks at. */
export interface Subject extends Pick<SandboxOptions, "network" | "limits" | "isolation" | "mounts" | "ttl"> {
  readonly backend: string;
  /** Undefined: an image that nobody knows. */
  readonly images: readonly (string | undefined)[];
  /** Names of options that weaken the isolation. */
  readonly unsafe: readonly string[];
  /** Whether the time of its life is for a policy to decide. */
  readonly hasLifetime: boolean;
}

const LIMITS = ["memory", "cpus", "pids", "disk"] as const;

/** The options of a new sandbox, with what the policies set where the call asks for nothing. Without a backend: of a task's container. */
export function withPolicyDefaults<T extends SandboxOptions>(
  policies: readonly Policy[],
  backend: Backend | undefined,
  opts: T,
): T {
  if (policies.length === 0) return opts;
  const limits: Limits = { ...opts.limits };
  for (const name of LIMITS) {
    const usual = usualOf(policies, ({ limits: rules }) => boundOf(rules?.[name], toBytes));
    if (limits[name] === undefined && usual !== undefined) limits[name] = usual;
  }
  const ttl = opts.ttl ?? usualOf(policies, (rules) => boundOf(rules.ttl, toMilliseconds));
  return {
    ...opts,
    ...(backend !== undefined && opts.network === undefined && { network: usualNetwork(policies, backend, opts) }),
    ...(Object.keys(limits).length > 0 && { limits }),
    ...(ttl !== undefined && { ttl }),
  };
}

/** Throws `permission_denied` for what breaks a policy. Names the rule and its file. */
export function assertAllowed(policies: readonly Policy[], subject: Subject): void {
  refuseFirst(policies, (rules) => faultOf(rules, subject));
}

/** Throws `permission_denied` if a policy forbids a network. */
export function assertNetworkAllowed(policies: readonly Policy[], network: NetworkPolicy): void {
  refuseFirst(policies, (rules) => networkFault(rules, network));
}

function refuseFirst(policies: readonly Policy[], find: (rules: PolicyFile) => PolicyFault | undefined): void {
  for (const { path, rules } of policies) {
    const found = find(rules);
    if (found === undefined) continue;
    throw new SandboxError("permission_denied", `The policy ${path} forbids it (rule ${found.rule}): ${found.why}`, {
      hint: found.hint,
    });
  }
}

/** Throws `permission_denied` if a policy sets a limit that the backend can't enforce. */
export function assertEnforceable(policies: readonly Policy[], backend: string, able: readonly (keyof Limits)[]): void {
  for (const { path, rules } of policies) {
    const lacking = LIMITS.find((name) => rules.limits?.[name] !== undefined && !able.includes(name));
    if (lacking === undefined) continue;
    throw new SandboxError(
      "permission_denied",
      `The policy ${path} forbids it (rule limits.${lacking}): the ${backend} backend can't enforce this limit`,
      { hint: "use another backend" },
    );
  }
}

interface PolicyFault {
  readonly rule: keyof PolicyFile | `limits.${keyof Limits}`;
  readonly why: string;
  readonly hint: string;
}

function faultOf(rules: PolicyFile, subject: Subject): PolicyFault | undefined {
  const { backend, network = "none" } = subject;
  if (rules.backends !== undefined && !rules.backends.includes(backend)) {
    return fault("backends", `the backend ${backend} is not allowed`, `allowed: ${rules.backends.join(", ")}`);
  }
  if (rules.isolation === "required" && subject.isolation === "none") {
    return fault("isolation", "isolation can't be none", "leave isolation out");
  }
  const broken = (["isolation", "network", "mounts"] as const).find((rule) => (rules[rule] ?? "full") !== "full");
  if (broken !== undefined && subject.unsafe[0] !== undefined) {
    return fault(broken, `${subject.unsafe[0]} weakens the isolation`, `leave ${subject.unsafe[0]} out`);
  }
  return (
    networkFault(rules, network) ??
    imageFault(rules, subject) ??
    mountFault(rules, subject) ??
    boundFault(rules, subject)
  );
}

function networkFault({ network: most }: PolicyFile, network: NetworkPolicy): PolicyFault | undefined {
  if (most === undefined || isWithinNetwork(network, most)) return undefined;
  return fault("network", `the network ${shown(network)} is more than ${shown(most)}`, "ask for less");
}

function imageFault({ images }: PolicyFile, subject: Subject): PolicyFault | undefined {
  if (images === undefined) return undefined;
  const patterns = images.map(globToRegExp);
  const hint = `allowed: ${images.join(", ")}`;
  for (const image of subject.images) {
    if (image === undefined) return fault("images", "it is not known which image it is made of", hint);
    const name = /[:@][^/]*$/.test(image) ? image : `${image}:latest`;
    if (!patterns.some((pattern) => pattern.test(name)))
      return fault("images", `the image ${image} is not allowed`, hint);
  }
  return undefined;
}

function mountFault({ mounts: rule }: PolicyFile, { mounts = [] }: Subject): PolicyFault | undefined {
  if (rule === undefined) return undefined;
  for (const { source, writable = false } of mounts) {
    if (rule === "none")
      return fault("mounts", `${source} can't be made visible in a sandbox`, "copy files in instead");
    const real = realOf(source);
    const hint = `allowed: below ${rule.under.join(", ")}`;
    if (!rule.under.some((directory) => isWithin(real, realOf(directory)))) {
      return fault("mounts", `${real} can't be made visible in a sandbox`, hint);
    }
    if (writable && rule.readOnly === true) return fault("mounts", `${real} can't be writable`, "mount it read-only");
  }
  return undefined;
}

function boundFault(rules: PolicyFile, { limits = {}, ttl, hasLifetime }: Subject): PolicyFault | undefined {
  for (const name of LIMITS) {
    const most = boundOf(rules.limits?.[name], toBytes)?.max;
    const asked = limits[name];
    if (most === undefined || (asked !== undefined && asked <= most)) continue;
    const what = asked === undefined ? "it has no such limit" : `${asked} is more than ${most}`;
    return fault(`limits.${name}`, what, `ask for at most ${most}`);
  }
  const longest = hasLifetime ? boundOf(rules.ttl, toMilliseconds)?.max : undefined;
  if (longest === undefined || (ttl !== undefined && ttl <= longest)) return undefined;
  const what = ttl === undefined ? "the sandbox has no ttl" : `a ttl of ${ttl} ms is more than ${longest} ms`;
  return fault("ttl", what, `ask for at most ${longest} ms`);
}

function fault(rule: PolicyFault["rule"], why: string, hint: string): PolicyFault {
  return { rule, why, hint };
}

function usualNetwork(policies: readonly Policy[], backend: Backend, opts: SandboxOptions): NetworkPolicy {
  const able = backend.capabilities(opts).network;
  const usual = backend.defaultNetwork ?? (able.includes("none") ? "none" : "full");
  const bounds = policies.flatMap(({ rules }) => rules.network ?? []);
  const isPossible = (network: NetworkPolicy): boolean =>
    able.includes(typeof network === "string" ? network : "allow") &&
    bounds.every((bound) => isWithinNetwork(network, bound));
  return [usual, ...bounds, "none" as const].find(isPossible) ?? usual;
}

function isWithinNetwork(asked: NetworkPolicy, most: NetworkPolicy): boolean {
  if (most === "full" || asked === "none") return true;
  if (most === "none" || asked === "full") return false;
  return firstBeyond(asked, most) === undefined;
}

/** The least of what the policies set for a sandbox that asks for nothing. */
function usualOf(
  policies: readonly Policy[],
  pick: (rules: PolicyFile) => Bound<number> | undefined,
): number | undefined {
  const bounds = policies.flatMap(({ rules }) => pick(rules) ?? []);
  return bounds.length === 0 ? undefined : Math.min(...bounds.map(({ max, default: usual = max }) => usual));
}

function boundOf<T extends number | string>(
  rule: T | Bound<T> | undefined,
  toNumber: (value: number | string) => number,
): Bound<number> | undefined {
  if (rule === undefined) return undefined;
  const { max, default: usual = max } = typeof rule === "object" ? rule : { max: rule };
  return { max: toNumber(max), default: toNumber(usual) };
}

function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

function shown(network: NetworkPolicy): string {
  if (typeof network === "string") return network;
  const { allow, deny = [] } = network;
  return [
    `allow=${allow.map(entryText).join(",")}`,
    ...(deny.length > 0 ? [`deny=${deny.map(entryText).join(",")}`] : []),
  ].join(",");
}
