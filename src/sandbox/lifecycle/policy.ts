import type { Backend } from "../../../contracts/backend.js";
import type { SandboxOptions } from "../../../contracts/sandbox.js";
import type { NetworkPolicy } from "../../../contracts/types.js";
import type { Exposure, SandboxRecord } from "../../ledger.js";
import { policiesInForce } from "../settings/policies.js";
import {
  assertAllowed,
  assertEnforceable,
  assertNetworkAllowed,
  type Subject,
  withPolicyDefaults,
} from "../settings/policy-rules.js";

/** The limits that containers of tasks can have. */
const OF_TASKS = ["memory", "cpus", "pids"] as const;

/** The options of a new sandbox under the policies in force. `permission_denied` if they break one. */
export async function underPolicy(backend: Backend, opts: SandboxOptions): Promise<SandboxOptions> {
  const policies = await policiesInForce();
  if (policies.length === 0) return opts;
  const bounded = withPolicyDefaults(policies, backend, opts);
  const ttl = bounded.ttl === undefined ? {} : { ttl: bounded.ttl };
  assertAllowed(policies, { ...subjectOf(backend, bounded, exposureOf(backend, bounded)), ...ttl });
  assertEnforceable(policies, backend.name, backend.capabilities(bounded).limits);
  return bounded;
}

/** Throws `permission_denied` if a sandbox that exists breaks a policy that is in force now. */
export async function assertStillAllowed(
  backend: Backend,
  opts: SandboxOptions,
  made: Pick<SandboxRecord, "createdAt" | "expiresAt"> & { readonly exposure?: Exposure | undefined },
): Promise<void> {
  const policies = await policiesInForce();
  if (policies.length === 0) return;
  const { createdAt, expiresAt, exposure = unknownExposure(backend) } = made;
  const ttl = expiresAt === undefined ? {} : { ttl: Date.parse(expiresAt) - Date.parse(createdAt) };
  assertAllowed(policies, { ...subjectOf(backend, opts, exposure), ...ttl });
}

/** Throws `permission_denied` if a policy forbids a network, for good or for a while. */
export async function assertNetwork(network: NetworkPolicy): Promise<void> {
  assertNetworkAllowed(await policiesInForce(), network);
}

/** Throws `permission_denied` if a container of a task breaks a policy. Returns its limits, with what the policies set. */
export async function underTaskPolicy(
  task: Pick<Subject, "backend" | "images"> & Required<Pick<Subject, "network" | "limits">>,
): Promise<NonNullable<SandboxOptions["limits"]>> {
  const policies = await policiesInForce();
  if (policies.length === 0) return task.limits;
  const { limits } = withPolicyDefaults(policies, undefined, { limits: task.limits });
  assertAllowed(policies, { ...task, limits: limits ?? {}, isolation: "required", unsafe: [], hasLifetime: false });
  assertEnforceable(policies, task.backend, OF_TASKS);
  return limits ?? {};
}

/** What a sandbox with these options is made of and shows of the host. It is recorded, for a policy that comes later. */
export function exposureOf(backend: Backend, opts: SandboxOptions): Exposure {
  const { baseDir, gitAlternates = [], snapshot } = opts;
  const images = backend.images?.(opts) ?? [];
  return {
    // The image of a snapshot is not in its record.
    images:
      snapshot !== undefined && backend.startsFromSnapshots === true ? [null] : images.map((name) => name ?? null),
    unsafe: backend.unsafeOptions?.(opts) ?? [],
    hostPaths: [
      ...(baseDir === undefined ? [] : [{ source: baseDir, writable: true }]),
      ...gitAlternates.map((source) => ({ source })),
    ],
  };
}

/** Version 0.1 recorded none. */
function unknownExposure(backend: Backend): Exposure {
  return { images: backend.images === undefined ? [] : [null], unsafe: [], hostPaths: [] };
}

function subjectOf(backend: Backend, opts: SandboxOptions, { images, unsafe, hostPaths }: Exposure): Subject {
  const { network, limits, isolation, mounts = [] } = opts;
  return {
    backend: backend.name,
    images: images.map((name) => name ?? undefined),
    unsafe,
    mounts: [...mounts, ...hostPaths],
    hasLifetime: true,
    ...(network !== undefined && { network }),
    ...(limits !== undefined && { limits }),
    ...(isolation !== undefined && { isolation }),
  };
}
