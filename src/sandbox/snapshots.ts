import type { SnapshotRecord } from "../../contracts/backend.js";
import { SandboxError, withTypedErrors } from "../../contracts/errors.js";
import { readSnapshotRecord, readSnapshotRecords, removeSnapshotRecord } from "../ledger.js";
import { loadBackend } from "./registry.js";

/** One snapshot, of this or of another process, whether its sandbox is still there or not. */
export type SnapshotInfo = Omit<SnapshotRecord, "version" | "details">;

/** Every snapshot, the oldest first. */
export async function listSnapshots(): Promise<SnapshotInfo[]> {
  const records = await withTypedErrors("snapshots", readSnapshotRecords);
  return records.map(({ version: _, details: __, ...info }) => info);
}

/** Deletes a snapshot for good. Unknown: `not_found`. */
export async function deleteSnapshot(id: string): Promise<void> {
  const record = await readSnapshotRecord(id);
  const backend = await loadBackend(record.backend);
  if (backend.removeSnapshot === undefined) {
    throw new SandboxError("unsupported", `The backend "${record.backend}" cannot delete snapshots`);
  }
  await withTypedErrors("deleteSnapshot", async () => {
    await backend.removeSnapshot?.(record);
    // Last: until here the call can be made again.
    await removeSnapshotRecord(id);
  });
}
