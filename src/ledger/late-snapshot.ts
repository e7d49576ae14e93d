import type { SnapshotRecord } from "../../contracts/backend.js";
import { readSnapshotRecord, removeSnapshotRecord } from "./snapshot-record.js";

/** Makes a snapshot for a call that may end before it is ready. A late one is deleted, because nobody gets its id. */
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
