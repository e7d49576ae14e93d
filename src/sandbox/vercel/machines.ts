import type { Sandbox } from "@vercel/sandbox";
import type { NetworkPolicy } from "../../../contracts/types.js";
import { SandboxError } from "../errors.js";
import type { VercelClient } from "./client.js";
import { statusOf, toVercelError } from "./failure.js";
import type { VercelSettings } from "./settings.js";

/** Where the files of a new machine come from. */
export type MachineSource =
  | { type: "git"; url: string; username?: string; password?: string; depth?: number }
  | { type: "snapshot"; snapshotId: string };

/** What a new machine is. */
export interface NewMachine {
  readonly name: string;
  /** Id of the sandbox that it belongs to, as a tag. */
  readonly owner: string;
  /** Whether stopping it saves its files. */
  readonly persistent: boolean;
  readonly source?: MachineSource;
  readonly signal?: AbortSignal | undefined;
}

/** Starts a machine. The name is ours alone: if it is taken, an answer was lost and the machine is this one. */
export async function createMachine(
  { sdk, access }: VercelClient,
  settings: VercelSettings,
  machine: NewMachine,
): Promise<Sandbox> {
  const { name, owner, persistent, source, signal } = machine;
  const policy = toPolicy(settings.network);
  // The clone needs the network; nothing of the user's runs before it is taken away.
  const isCloned = source?.type === "git" && settings.network !== "full";
  const isFromSnapshot = source?.type === "snapshot";
  try {
    const params = {
      ...access,
      name,
      persistent,
      timeout: settings.timeout,
      ports: [...settings.ports],
      networkPolicy: isCloned ? "allow-all" : policy,
      tags: { glovebox: owner },
      ...(settings.vcpus !== undefined && { resources: { vcpus: settings.vcpus } }),
      ...(settings.region !== undefined && { region: settings.region }),
      ...(persistent && { snapshotExpiration: 0, keepLastSnapshots: { count: 1, expiration: 0, deleteEvicted: true } }),
      ...(!isFromSnapshot && settings.image !== undefined && { image: settings.image }),
      ...(!isFromSnapshot && settings.runtime !== undefined && { runtime: settings.runtime }),
      ...(source !== undefined && { source }),
      ...(signal !== undefined && { signal }),
    };
    // Its type has one form for each kind of source; the service takes them as they are.
    const sandbox = await sdk.Sandbox.create(params as Parameters<typeof sdk.Sandbox.create>[0] & object).catch(
      async (error: unknown) => {
        if (statusOf(error) !== 400 || !/already exists/i.test(String((error as Error).message))) throw error;
        return await sdk.Sandbox.get({ ...access, name, resume: false });
      },
    );
    if (isCloned) await sandbox.currentSession().update({ networkPolicy: policy });
    return sandbox;
  } catch (error) {
    throw toVercelError(error, "open");
  }
}

/** Starts a kept machine again. */
export async function resumeMachine({ sdk, access }: VercelClient, name: string): Promise<Sandbox> {
  try {
    return await sdk.Sandbox.get({ ...access, name, resume: true });
  } catch (error) {
    if (statusOf(error) !== 404 && statusOf(error) !== 410) throw toVercelError(error, "open");
    throw new SandboxError("not_found", `The service has no machine "${name}" any more`, {
      cause: toVercelError(error),
    });
  }
}

/** Stops a machine and takes its name away; one that is not there is no error. */
export async function removeMachine({ sdk, access }: VercelClient, name: string): Promise<void> {
  try {
    const sandbox = await sdk.Sandbox.get({ ...access, name, resume: false });
    await stopMachine(sandbox);
    await sandbox.delete();
    // What the service saved by itself when it stopped. Snapshots that were asked for are of machines without this.
    if (sandbox.persistent && sandbox.currentSnapshotId !== undefined) {
      await removeServiceSnapshot({ sdk, access }, sandbox.currentSnapshotId);
    }
  } catch (error) {
    if (statusOf(error) !== 404) throw toVercelError(error, "teardown");
  }
}

/** Stops a machine; one that has stopped already is no error. */
export async function stopMachine(sandbox: Sandbox): Promise<void> {
  try {
    await sandbox.currentSession().stop();
  } catch (error) {
    if (![404, 410, 422].includes(statusOf(error) ?? 0)) throw toVercelError(error, "teardown");
  }
}

/** Deletes a snapshot of the service; one that is not there is no error. */
export async function removeServiceSnapshot({ sdk, access }: VercelClient, snapshotId: string): Promise<void> {
  try {
    await (await sdk.Snapshot.get({ ...access, snapshotId })).delete();
  } catch (error) {
    if (statusOf(error) !== 404 && statusOf(error) !== 410) throw toVercelError(error, "deleteSnapshot");
  }
}

function toPolicy(network: NetworkPolicy): "allow-all" | "deny-all" | { allow: string[] } {
  if (network === "full") return "allow-all";
  // A list without names would be a policy without a rule.
  if (network === "none" || network.allow.length === 0) return "deny-all";
  return { allow: [...network.allow] };
}
