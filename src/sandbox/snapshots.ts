import type { SnapshotRecord } from "../../contracts/backend.js";
import { SandboxError, withTypedErrors } from "../../contracts/errors.js";
import { readSnapshotRecord, readSnapshotRecords, removeSnapshotRecord } from "../ledger.js";
import { loadBackend } from "./registry.js";

/** One snapshot, of this or another process, whether its sandbox still exists or not. */
export type SnapshotInfo = Omit<SnapshotRecord, "version" | "details">;

/** All snapshots, oldest first. */
export async function listSnapshots(): Promise<SnapshotInfo[]> {
  const records = await withTypedErrors("snapshots", readSnapshotRecords);
  return records.map(({ version: _, details: __, ...info }) => info);
}

/** Deletes a snapshot. Unknown: `not_found`. */
export async function deleteSnapshot(id: string): Promise<void> {
  const record = await readSnapshotRecord(id);
  const backend = await loadBackend(record.backend);
  if (backend.removeSnapshot === undefined) {
    throw new SandboxError("unsupported", `The backend "${record.backend}" can't delete snapshots`);
  }
  await withTypedErrors("deleteSnapshot", async () => {
    await backend.removeSnapshot?.(record);
    // Last: until here the call can be repeated.
    await removeSnapshotRecord(id);
  });
}
