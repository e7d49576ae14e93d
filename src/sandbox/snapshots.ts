import type { SnapshotRecord } from "../../contracts/backend.js";
import { SandboxError, withTypedErrors } from "../../contracts/errors.js";
import { findSnapshotRecord, readSnapshotRecords, removeSnapshotRecord } from "../ledger.js";
import * as is from "../util/schema.js";
import { check, type Schema } from "../util/schema.js";
import { loadBackend } from "./registry.js";

/** One snapshot, of this or another process, whether its sandbox still exists or not. */
export type SnapshotInfo = Omit<SnapshotRecord, "version" | "details">;

const listOptions: Schema<{ name?: string }> = is.object({ name: is.text });

/** All snapshots, oldest first; with `name`, the one of this name. */
export async function listSnapshots(opts: { name?: string } = {}): Promise<SnapshotInfo[]> {
  check(opts, listOptions, "options");
  const records = await withTypedErrors("snapshots", readSnapshotRecords);
  const wanted = opts.name === undefined ? records : records.filter(({ name }) => name === opts.name);
  return wanted.map(({ version: _, details: __, ...info }) => info);
}

/** Deletes a snapshot, given by id or name. Unknown: `not_found`. */
export async function deleteSnapshot(idOrName: string): Promise<void> {
  check(idOrName, is.text, "snapshot");
  const record = await findSnapshotRecord(idOrName);
  const backend = await loadBackend(record.backend);
  if (backend.removeSnapshot === undefined) {
    throw new SandboxError("unsupported", `The backend "${record.backend}" can't delete snapshots`);
  }
  await withTypedErrors("deleteSnapshot", async () => {
    await backend.removeSnapshot?.(record);
    // Last: until here the call can be repeated.
    await removeSnapshotRecord(record.id);
  });
}
