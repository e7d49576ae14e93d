import { SandboxError } from "../../../../contracts/errors.js";
import type { NetworkPolicy } from "../../../../contracts/types.js";
import {
  arrayOf,
  type Check,
  checkFunction,
  checkOptions,
  checkText,
  checkTimeout,
  invalidArgument,
  type Shape,
  whole,
} from "../../../util/checks.js";
import type { SandboxOptions } from "../../types.js";
import type { VercelOptions } from "./vercel-options.js";

/** What the service is asked for; nothing of it is a secret, so a kept sandbox remembers it. */
export interface VercelSettings {
  readonly image?: string;
  readonly runtime?: string;
  readonly timeout: number;
  readonly vcpus?: number;
  readonly network: NetworkPolicy;
  readonly ports: readonly number[];
  readonly region?: string;
  readonly snapshotExpiration?: number;
}

/** Each virtual processor comes with so much memory. */
const MEMORY_PER_VCPU = 2 * 1024 ** 3;
const MAX_VCPUS = 32;
const MAX_PORTS = 15;
const DEFAULT_TIMEOUT = 300_000;
const DAY = 86_400_000;

const checkPresent: Check = (value, name) => {
  if (typeof value !== "object" || value === null)
    throw invalidArgument(name, "the module @vercel/sandbox", typeof value);
};
/** Never shows the value. */
const checkToken: Check = (value, name) => {
  if (typeof value !== "string" || !/^[\x21-\x7e]+$/.test(value)) {
    throw new SandboxError("invalid_argument", `Invalid ${name}: expected printable characters without spaces`);
  }
};

const shape: Shape = new Map<string, Check>([
  ["token", checkToken],
  ["teamId", checkText],
  ["projectId", checkText],
  ["runtime", checkText],
  ["timeout", checkTimeout],
  ["ports", arrayOf(whole(1, 65_535))],
  ["region", checkText],
  ["snapshotExpiration", whole(0, 365 * DAY)],
  ["fetch", checkFunction],
  ["sdk", checkPresent],
]);

/** Checks what only this backend knows of the options. */
export function checkVercelOptions(value: unknown): VercelOptions {
  checkOptions(value, shape, "vercel");
  return value as VercelOptions;
}

/** Enforce or refuse: everything that cannot be kept is an error here, before any request. */
export function toSettings(opts: SandboxOptions): VercelSettings {
  const { vercel = {} } = opts;
  for (const name of ["baseDir", "workspace", "mounts"] as const) {
    const value = opts[name];
    if (value === undefined || (Array.isArray(value) && value.length === 0)) continue;
    throw new SandboxError("unsupported", `The vercel backend can't enforce ${name}: the machine is not on this host`, {
      backend: "vercel",
      hint: "copy files in by refreshFromHost, or give a repository as repo",
    });
  }
  if (opts.image !== undefined && vercel.runtime !== undefined) {
    throw new SandboxError(
      "invalid_argument",
      `Option image ("${opts.image}") does not go together with vercel.runtime ("${vercel.runtime}")`,
      { hint: "choose one of the two" },
    );
  }
  const { network = "none" } = opts;
  assertNames(network);
  const ports = vercel.ports ?? [];
  if (ports.length > MAX_PORTS) throw invalidArgument("vercel.ports", `at most ${MAX_PORTS} ports`, ports.length);
  const vcpus = vcpusFor(opts.limits);
  return {
    ...(opts.image !== undefined && { image: opts.image }),
    ...(vercel.runtime !== undefined && { runtime: vercel.runtime }),
    ...(vcpus !== undefined && { vcpus }),
    ...(vercel.region !== undefined && { region: vercel.region }),
    ...(vercel.snapshotExpiration !== undefined && { snapshotExpiration: vercel.snapshotExpiration }),
    timeout: vercel.timeout ?? DEFAULT_TIMEOUT,
    network,
    ports: [...new Set(ports)],
  };
}

/** The service knows names, not ports. */
function assertNames(network: NetworkPolicy): void {
  if (typeof network === "string") return;
  network.allow.forEach((entry, index) => {
    if (!/:\d+$/.test(entry)) return;
    throw new SandboxError("unsupported", `The vercel backend can't enforce network.allow[${index}] ("${entry}")`, {
      backend: "vercel",
      hint: "it allows whole hosts; leave the port out",
    });
  });
}

/** The largest machine that stays within the limits; there are none smaller than one processor with its memory. */
function vcpusFor(limits: SandboxOptions["limits"] = {}): number | undefined {
  const { cpus, memory } = limits;
  if (cpus === undefined && memory === undefined) return undefined;
  const most = Math.floor(Math.min(cpus ?? MAX_VCPUS, (memory ?? Number.MAX_SAFE_INTEGER) / MEMORY_PER_VCPU));
  if (most >= 1) return Math.min(most, MAX_VCPUS);
  const name = cpus !== undefined && cpus < 1 ? `limits.cpus (${cpus})` : `limits.memory (${memory})`;
  throw new SandboxError("unsupported", `The vercel backend can't enforce ${name}`, {
    backend: "vercel",
    hint: `a machine has at least one processor with ${MEMORY_PER_VCPU} bytes of memory`,
  });
}
