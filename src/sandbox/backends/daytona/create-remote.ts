import type { SandboxEntry } from "../../../../contracts/backend.js";
import { SandboxError } from "../../../../contracts/errors.js";
import { DEFAULT_OPERATION_TIMEOUT, type SandboxOptions } from "../../types.js";
import type { Daytona, RemoteSandbox } from "./client.js";
import { persist, statusOf, toFailure } from "./failure.js";
import { fitResources, refusedSize } from "./fit-resources.js";
import { labelsOf } from "./labels.js";
import { assertNetwork, type NetworkSettings, refusedNetwork } from "./network-settings.js";
import { DEFAULT_SNAPSHOT, readLifetime } from "./options.js";

/** What a new sandbox at the service is made of. */
export interface RemotePlan {
  readonly entry: Pick<SandboxEntry, "id" | "name" | "labels" | "expiresAt">;
  readonly name: string;
  readonly opts: SandboxOptions;
  readonly network: NetworkSettings;
  /** Snapshot to start from, instead of the one in the options. */
  readonly snapshot?: string;
}

/** Makes a sandbox at the service. It can be found by its name even if this call fails. */
export async function createRemote(client: Daytona, plan: RemotePlan): Promise<RemoteSandbox> {
  const { entry, name, opts, network } = plan;
  const { autoStop, ttl } = readLifetime(opts, entry.expiresAt);
  const keep = isKept(opts);
  const common = {
    ...{ name, labels: labelsOf(entry, keep), ...network, autoStopInterval: autoStop },
    // Deleted when it stops, unless it should be reopened.
    autoDeleteInterval: keep || isStoppedOnce(plan) ? -1 : 0,
    ...(ttl > 0 ? { ttlMinutes: ttl } : undefined),
  };
  const resources = opts.daytona?.resources;
  const seconds = secondsOf(opts);
  const snapshot = plan.snapshot ?? opts.daytona?.snapshot ?? DEFAULT_SNAPSHOT;
  try {
    // The SDK modifies its arguments, so each attempt gets its own.
    const make = (): Promise<RemoteSandbox> =>
      hasImage(plan)
        ? client.create(
            { ...common, image: opts.image ?? "", ...(resources && { resources: { ...resources } }) },
            { timeout: seconds },
          )
        : client.create({ ...common, snapshot }, { timeout: seconds });
    // A refusal for too many requests has made nothing; after any other failure that is unknown.
    return await persist(make, (error) => statusOf(error) === 429, seconds * 1_000);
  } catch (error) {
    if (hasImage(plan) && /build_failed/.test(String(error))) throw unbuilt(error, opts.image);
    if (resources !== undefined && statusOf(error) === 400 && /cpu|memory|disk/i.test(String(error))) {
      throw refusedSize(error, resources);
    }
    throw refusedNetwork(error, network);
  }
}

/** Makes sure that a new sandbox has its network rule, and its size if its snapshot has another one. */
export async function fitRemote(remote: RemoteSandbox, plan: RemotePlan): Promise<void> {
  const { opts } = plan;
  assertNetwork(remote, plan.network);
  if (opts.daytona?.resources !== undefined) {
    await fitResources(remote, opts.daytona.resources, { seconds: secondsOf(opts) });
  }
  if (isKept(opts) || !isStoppedOnce(plan)) return;
  try {
    await persist(() => remote.setAutoDeleteInterval(0));
  } catch (error) {
    throw toFailure(error, "the sandbox would not be deleted when it stops");
  }
}

function isKept({ keep = false }: SandboxOptions): boolean {
  return keep !== false;
}

function hasImage({ snapshot, opts }: RemotePlan): boolean {
  return snapshot === undefined && opts.image !== undefined;
}

/** Its disk is first that of its snapshot, and is resized while the machine is stopped, which must not delete it. */
function isStoppedOnce(plan: RemotePlan): boolean {
  return plan.opts.daytona?.resources?.disk !== undefined && !hasImage(plan);
}

function secondsOf(opts: SandboxOptions): number {
  return Math.ceil((opts.operationTimeout ?? DEFAULT_OPERATION_TIMEOUT) / 1_000);
}

function unbuilt(error: unknown, image: string | undefined): SandboxError {
  const { message } = toFailure(error, `image "${image}" could not be built`);
  return new SandboxError("invalid_argument", message, { cause: error, hint: "the service must be able to pull it" });
}

/** Whether the service refused a creation, so that nothing was made. */
export function wasRefused(error: unknown): boolean {
  const status = statusOf((error as { cause?: unknown }).cause) ?? 0;
  return status >= 400 && status < 500 && status !== 408 && status !== 409;
}
