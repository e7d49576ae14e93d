import type { SnapshotRecord } from "../../contracts/backend.js";
import { readSnapshotRecord, removeSnapshotRecord } from "./snapshot-record.js";

/**
 * Makes a snapshot for a call that may be over before the snapshot is ready. A late one is deleted: its id is never returned, so nobody could
 * restore or delete it.
 */
export async function snapshotInTime(
  signal: AbortSignal | undefined,
  make: () => Promise<string>,
  remove: (record: SnapshotRecord) => Promise<void>,
): Promise<string> {
  const id = await make();
  if (signal?.aborted !== true) return id;
  await remove(await readSnapshotRecord(id));
  await removeSnapshotRecord(id);
  throw signal.reason;
}
