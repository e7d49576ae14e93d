import { SandboxError } from "../../../../contracts/errors.js";
import type { NetworkPolicy } from "../../../../contracts/types.js";
import * as is from "../../../util/schema.js";
import { invalidArgument, type Parser, parser } from "../../../util/schema.js";
import { toNames } from "../../egress.js";
import type { SandboxOptions } from "../../types.js";
import type { VercelOptions } from "./vercel-options.js";

/** What the service is asked for; nothing of it is a secret, so a kept sandbox remembers it. */
export interface VercelSettings {
  /** Absent: the directory that the service starts commands in. */
  readonly workDir?: string;
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
/** So much later than this process does the service end an idle machine, in milliseconds. */
const MARGIN = 60_000;
const DAY = 86_400_000;

const sdk = is.custom<unknown>((value, name) => {
  if (typeof value === "object" && value !== null) return;
  throw invalidArgument(name, "the module @vercel/sandbox", typeof value);
});

/** What only this backend knows of the options. */
export const vercelOptions: Parser<VercelOptions> = parser(
  "vercel",
  is.object<VercelOptions>({
    token: is.token,
    teamId: is.text,
    projectId: is.text,
    runtime: is.text,
    timeout: is.timeout,
    ports: is.list(is.port),
    region: is.text,
    snapshotExpiration: is.whole(0, 365 * DAY),
    fetch: is.callback(),
    sdk,
  }),
);

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
  const ports = [...new Set([...(vercel.ports ?? []), ...(opts.publish ?? [])])];
  if (ports.length > MAX_PORTS) {
    const name = opts.publish === undefined ? "vercel.ports" : "publish (with vercel.ports)";
    throw invalidArgument(name, `at most ${MAX_PORTS} ports`, ports.length);
  }
  const vcpus = vcpusFor(opts.limits);
  return {
    ...(opts.workDir !== undefined && { workDir: opts.workDir }),
    ...(opts.image !== undefined && { image: opts.image }),
    ...(vercel.runtime !== undefined && { runtime: vercel.runtime }),
    ...(vcpus !== undefined && { vcpus }),
    ...(vercel.region !== undefined && { region: vercel.region }),
    ...(vercel.snapshotExpiration !== undefined && { snapshotExpiration: vercel.snapshotExpiration }),
    timeout: timeoutOf(opts),
    network,
    ports,
  };
}

/** How long the service lets an idle machine run: not less than `idleTimeout`, nor longer than `ttl`. */
function timeoutOf({ ttl = Number.POSITIVE_INFINITY, idleTimeout = 0, vercel = {}, id }: SandboxOptions): number {
  const { timeout } = vercel;
  if (timeout === undefined) return Math.min(ttl, Math.max(DEFAULT_TIMEOUT, idleTimeout + MARGIN));
  if (id === undefined && timeout > ttl) throw clashing("ttl", ttl, timeout, "a machine must not outlive the sandbox");
  if (id === undefined && timeout < idleTimeout) {
    throw clashing("idleTimeout", idleTimeout, timeout, "the service would stop an idle machine before that");
  }
  return timeout;
}

function clashing(name: string, value: number, timeout: number, reason: string): SandboxError {
  return new SandboxError(
    "invalid_argument",
    `Option ${name} (${value}) does not go together with vercel.timeout (${timeout}): ${reason}`,
    { hint: `omit vercel.timeout: it follows from ${name}` },
  );
}

/** The service knows names, not ports. */
function assertNames(network: NetworkPolicy): void {
  if (typeof network === "string") return;
  toNames(network.allow).forEach((entry, index) => {
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
