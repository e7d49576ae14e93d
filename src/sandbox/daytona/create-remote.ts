import type { NetworkPolicy } from "../../../contracts/types.js";
import { SandboxError } from "../errors.js";
import { DEFAULT_OPERATION_TIMEOUT, type SandboxOptions } from "../types.js";
import type { Daytona, RemoteSandbox } from "./client.js";
import { persist, statusOf, toFailure } from "./failure.js";
import { fitResources, refusedSize } from "./fit-resources.js";
import { labelsOf } from "./labels.js";
import { DEFAULT_SNAPSHOT, readLifetime } from "./options.js";

/** The service's words for a network rule. */
export interface NetworkSettings {
  networkBlockAll?: boolean;
  domainAllowList?: string;
}

/** What a new sandbox at the service is made of. */
export interface RemotePlan {
  readonly id: string;
  readonly name: string;
  readonly opts: SandboxOptions;
  readonly network: NetworkSettings;
  /** Files to begin with, instead of the snapshot of the options. */
  readonly snapshot?: string;
}

/** Translates a network rule; a rule that names a port cannot be kept. */
export function networkSettings(network: NetworkPolicy = "full"): NetworkSettings {
  if (network === "full") return {};
  if (network === "none" || network.allow.length === 0) return { networkBlockAll: true };
  const withPort = network.allow.find((entry) => entry.includes(":"));
  if (withPort === undefined) return { domainAllowList: network.allow.join(",") };
  throw new SandboxError(
    "unsupported",
    `The daytona backend cannot keep network.allow "${withPort}": it allows names, not ports`,
  );
}

/** Makes a sandbox at the service. It is found by its name, also when this call does not end well. */
export async function createRemote(client: Daytona, plan: RemotePlan): Promise<RemoteSandbox> {
  const { id, name, opts, network } = plan;
  const { autoStop, ttl } = readLifetime(opts);
  const keep = opts.keep === true;
  const common = {
    ...{ name, labels: labelsOf(id, keep), ...network, autoStopInterval: autoStop },
    // Gone when it stops, unless it shall be opened again.
    autoDeleteInterval: keep || isStoppedOnce(plan) ? -1 : 0,
    ...(ttl > 0 && !keep ? { ttlMinutes: ttl } : undefined),
  };
  const resources = opts.daytona?.resources;
  const seconds = secondsOf(opts);
  const snapshot = plan.snapshot ?? opts.daytona?.snapshot ?? DEFAULT_SNAPSHOT;
  try {
    // The SDK writes into what it is given, so each attempt gets its own.
    const make = (): Promise<RemoteSandbox> =>
      hasImage(plan)
        ? client.create(
            { ...common, image: opts.image ?? "", ...(resources && { resources: { ...resources } }) },
            { timeout: seconds },
          )
        : client.create({ ...common, snapshot }, { timeout: seconds });
    // A refusal for too many requests has made nothing; after any other failure nobody knows.
    return await persist(make, (error) => statusOf(error) === 429);
  } catch (error) {
    if (/build_failed/.test(String(error))) throw unbuilt(error, opts.image);
    if (resources !== undefined && statusOf(error) === 400 && /cpu|memory|disk/i.test(String(error))) {
      throw refusedSize(error, resources);
    }
    throw explain(error, network);
  }
}

/** Gives a new sandbox its size, where its snapshot has another one. */
export async function fitRemote(remote: RemoteSandbox, plan: RemotePlan): Promise<void> {
  const { opts } = plan;
  if (opts.daytona?.resources !== undefined) {
    await fitResources(remote, opts.daytona.resources, { seconds: secondsOf(opts) });
  }
  if (opts.keep !== true && isStoppedOnce(plan)) await remote.setAutoDeleteInterval(0);
}

function hasImage({ snapshot, opts }: RemotePlan): boolean {
  return snapshot === undefined && opts.image !== undefined;
}

/** Its disk is that of its snapshot at first, and is changed while it stands still: it must not be deleted by that. */
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

/** Organisations of a lower tier cannot choose their network: that is the service's refusal, not a wrong argument. */
export function explain(error: unknown, network: NetworkSettings): SandboxError {
  const failure = toFailure(error, "the sandbox could not be made");
  const asked = Object.keys(network).length > 0;
  if (!asked || ![400, 403].includes(statusOf(error) ?? 0) || !/network|domain/i.test(failure.message)) return failure;
  return new SandboxError("unsupported", failure.message, {
    cause: error,
    hint: 'network: "full" is what this account can have',
  });
}

/** Whether the service has said no to a creation, so that nothing was made. */
export function wasRefused(error: unknown): boolean {
  const status = statusOf((error as { cause?: unknown }).cause) ?? 0;
  return status >= 400 && status < 500 && status !== 408 && status !== 409;
}
