import type { Sandbox } from "@vercel/sandbox";
import { SandboxError } from "../../../../contracts/errors.js";
import type { VercelClient } from "./client.js";
import { codeOf, statusOf, toVercelError } from "./failure.js";
import { SECOND_LINE } from "./lifetime.js";
import { patiently } from "./patience.js";
import { hasPolicy, toPolicy } from "./policy.js";
import type { VercelSettings } from "./settings.js";

/** Where the files of a new machine come from. */
export type MachineSource =
  | { type: "git"; url: string; username?: string; password?: string; depth?: number }
  | { type: "snapshot"; snapshotId: string };

/** The options of a new machine. */
export interface NewMachine {
  readonly name: string;
  /** Id of the sandbox that it belongs to, as a tag. */
  readonly owner: string;
  /** Whether stopping it saves its files. */
  readonly persistent: boolean;
  readonly source?: MachineSource;
  /** When its sandbox expires, ISO 8601. Absent: never. */
  readonly expiresAt?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** How long to wait if the service asks for it, in milliseconds. */
  readonly patience: number;
}

/** The service takes no shorter ones, in milliseconds. */
const LEAST_TIMEOUT = 1_000;
const LEAST_EXPIRATION = 86_400_000;

/** Answers with which the service refuses a machine before it has made anything. */
const REFUSALS: readonly number[] = [401, 402, 403, 429];

/** A machine that never existed: there is nothing to remove. */
export class RefusedMachine extends Error {
  readonly reason: SandboxError;

  constructor(reason: SandboxError) {
    super(reason.message);
    this.reason = reason;
  }
}

/** Starts a machine. Nobody else uses the name: if it is taken, an answer was lost and this is the machine. */
export async function createMachine(
  { sdk, access }: VercelClient,
  settings: VercelSettings,
  machine: NewMachine,
): Promise<{ sandbox: Sandbox; timeout: number }> {
  const { name, owner, persistent, source, signal, patience, expiresAt } = machine;
  const ends = expiresAt === undefined ? undefined : Date.parse(expiresAt) + SECOND_LINE - Date.now();
  const left = ends === undefined ? undefined : Math.max(LEAST_TIMEOUT, ends);
  const timeout = Math.min(settings.timeout, left ?? settings.timeout);
  // What a stopped machine saves goes with the sandbox, if nobody removes it before.
  const expiration = left === undefined ? 0 : Math.max(LEAST_EXPIRATION, left);
  const policy = toPolicy(settings.network);
  // The clone needs the network; nothing of the user's runs before it is restricted.
  const isCloned = source?.type === "git" && settings.network !== "full";
  const isFromSnapshot = source?.type === "snapshot";
  const seen = { isUncertain: false };
  try {
    const params = {
      ...access,
      fetch: watched(access.fetch, seen),
      name,
      persistent,
      timeout,
      ports: [...settings.ports],
      networkPolicy: isCloned ? "allow-all" : policy,
      tags: { glovebox: owner },
      ...(settings.vcpus !== undefined && { resources: { vcpus: settings.vcpus } }),
      ...(settings.region !== undefined && { region: settings.region }),
      ...(persistent && {
        snapshotExpiration: expiration,
        keepLastSnapshots: { count: 1, expiration, deleteEvicted: true },
      }),
      ...(!isFromSnapshot && settings.image !== undefined && { image: settings.image }),
      ...(!isFromSnapshot && settings.runtime !== undefined && { runtime: settings.runtime }),
      ...(source !== undefined && { source }),
      ...(signal !== undefined && { signal }),
    };
    // Its type has one form for each kind of source; the service accepts them all.
    const create = (): Promise<Sandbox> =>
      sdk.Sandbox.create(params as Parameters<typeof sdk.Sandbox.create>[0] & object);
    const sandbox = await patiently(patience, create, signal).catch(async (error: unknown) => {
      if (statusOf(error) !== 400 || !/already exists/i.test(String((error as Error).message)))
        throw refusal(error, seen);
      return await patiently(patience, () => sdk.Sandbox.get({ ...access, name, resume: false }));
    });
    // On the machine as well as on its session: the next session starts with the rule of the machine.
    if (isCloned) await patiently(patience, () => sandbox.update({ networkPolicy: policy }));
    return { sandbox, timeout };
  } catch (error) {
    throw error instanceof RefusedMachine ? error : toVercelError(error, "open");
  }
}

/** Remembers if the outcome of a request is unknown: the SDK repeats it, and only its last answer is seen. */
function watched(fetch: typeof globalThis.fetch, seen: { isUncertain: boolean }): typeof globalThis.fetch {
  return async (input, init) => {
    try {
      const response = await fetch(input, init);
      if (response.status >= 500) seen.isUncertain = true;
      return response;
    } catch (error) {
      seen.isUncertain = true;
      throw error;
    }
  };
}

function refusal(error: unknown, { isUncertain }: { isUncertain: boolean }): unknown {
  const isRefused = REFUSALS.includes(statusOf(error) ?? 0) || codeOf(error) === "snapshot_not_found";
  return isRefused && !isUncertain ? new RefusedMachine(toVercelError(error, "open")) : error;
}

/** Starts a kept machine again, with its network policy. */
export async function resumeMachine(
  { sdk, access }: VercelClient,
  name: string,
  settings: VercelSettings,
  patience: number,
): Promise<Sandbox> {
  try {
    const sandbox = await patiently(patience, () => sdk.Sandbox.get({ ...access, name, resume: true }));
    const policy = toPolicy(settings.network);
    // Nothing of the user's runs yet.
    if (!hasPolicy(sandbox, policy)) await patiently(patience, () => sandbox.update({ networkPolicy: policy }));
    return sandbox;
  } catch (error) {
    throw withoutMachine(error, name);
  }
}

/** The error for a machine that no longer exists. */
export function withoutMachine(error: unknown, name: string): SandboxError {
  const status = statusOf(error);
  if (status !== 404 && status !== 410) return toVercelError(error, "open");
  const cause = toVercelError(error);
  return codeOf(error) === "snapshot_not_found"
    ? new SandboxError("not_found", `The service no longer has the files of machine "${name}"`, {
        cause,
        hint: cause.hint,
      })
    : new SandboxError("not_found", `The service no longer has a machine "${name}"`, { cause });
}
