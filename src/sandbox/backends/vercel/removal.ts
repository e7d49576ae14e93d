import { setTimeout as delay } from "node:timers/promises";
import type { Sandbox } from "@vercel/sandbox";
import { SandboxError } from "../../../../contracts/errors.js";
import { readSnapshotRecords, snapshotIds } from "../../../ledger.js";
import type { VercelClient } from "./client.js";
import { codeOf, statusOf, toVercelError } from "./failure.js";
import { withoutMachine } from "./machines.js";
import { patiently } from "./patience.js";

/** How long a machine may take to stop and save its files, in milliseconds. */
const STOP_TIMEOUT = 60_000;
const STOP_INTERVAL = 250;
/** States of a session that end on their own. */
const ENDING: readonly string[] = ["stopping", "snapshotting", "pending"];

/** Stops a machine and deletes it, with the snapshots that the service took of it. Requested snapshots stay. No error if the machine is absent. */
export async function removeMachine(client: VercelClient, name: string, patience: number): Promise<void> {
  const { sdk, access } = client;
  try {
    const sandbox = await unlessAbsent(patiently(patience, () => sdk.Sandbox.get({ ...access, name, resume: false })));
    if (sandbox === undefined) return;
    const last = await stopMachine(client, sandbox, patience);
    // First: without the machine they could not be found any more.
    for (const snapshotId of new Set([...last, ...(await unaskedSnapshots(sandbox, patience))])) {
      await removeServiceSnapshot(client, snapshotId, patience);
    }
    await unlessAbsent(patiently(patience, () => sandbox.delete()));
  } catch (error) {
    throw toVercelError(error, "teardown");
  }
}

async function unlessAbsent<T>(answer: Promise<T>): Promise<T | undefined> {
  return await answer.catch((error: unknown) => {
    if (statusOf(error) !== 404) throw error;
    return undefined;
  });
}

/** Snapshots of a machine that no record of ours says were requested. */
async function unaskedSnapshots(sandbox: Sandbox, patience: number): Promise<string[]> {
  if (!sandbox.persistent && sandbox.currentSnapshotId === undefined) return [];
  // An unreadable record may belong to any of them.
  if (await hasDamagedRecord()) return [];
  const asked = await askedSnapshots();
  const listed = await patiently(patience, async () => await (await sandbox.listSnapshots()).toArray());
  return listed.filter(({ id, status }) => status !== "deleted" && !asked.has(id)).map(({ id }) => id);
}

async function hasDamagedRecord(): Promise<boolean> {
  return (await readSnapshotRecords()).length < (await snapshotIds()).length;
}

/** Ids of the snapshots at the service that were requested and not deleted. */
export async function askedSnapshots(): Promise<Set<string>> {
  const records = await readSnapshotRecords();
  const own = records.filter(({ backend }) => backend === "vercel");
  return new Set(own.map(({ details }) => (details as { snapshotId?: string } | undefined)?.snapshotId ?? ""));
}

/** Stops a machine and waits until it has stopped. Returns the snapshot that the service took of it, if it reports one. */
export async function stopMachine(
  { sdk, access }: VercelClient,
  sandbox: Sandbox,
  patience: number,
): Promise<string[]> {
  const { name } = sandbox;
  try {
    const { snapshot } = await patiently(patience, () => sandbox.stop());
    return snapshot === undefined ? [] : [snapshot.id];
  } catch (error) {
    const status = statusOf(error);
    if (status === 404 || status === 410) return [];
    if (status !== 422) throw toVercelError(error, "teardown");
    await findStopped({ sdk, access }, name, patience).catch((failure: unknown) => {
      if ((failure as SandboxError).code !== "not_found") throw failure;
    });
    return [];
  }
}

/** Finds a machine once it is no longer stopping: only then does its last snapshot exist. */
export async function findStopped({ sdk, access }: VercelClient, name: string, patience: number): Promise<Sandbox> {
  for (const deadline = performance.now() + STOP_TIMEOUT; performance.now() < deadline; await delay(STOP_INTERVAL)) {
    const sandbox = await patiently(patience, () => sdk.Sandbox.get({ ...access, name, resume: false })).catch(
      (error: unknown) => {
        throw withoutMachine(error, name);
      },
    );
    if (!ENDING.includes(sandbox.status)) return sandbox;
  }
  throw new SandboxError("unavailable", `The machine "${name}" did not stop within ${STOP_TIMEOUT} ms`);
}

/** Deletes a snapshot at the service. No error if it is absent. */
export async function removeServiceSnapshot(client: VercelClient, snapshotId: string, patience: number): Promise<void> {
  const { sdk, access } = client;
  try {
    await patiently(patience, async () => {
      const snapshot = await sdk.Snapshot.get({ ...access, snapshotId });
      if (snapshot.status !== "deleted") await snapshot.delete();
    });
  } catch (error) {
    if (statusOf(error) !== 404 && codeOf(error) !== "snapshot_not_found") throw toVercelError(error, "deleteSnapshot");
  }
}
