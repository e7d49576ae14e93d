export { snapshotInTime } from "./ledger/late-snapshot.js";
export { claimName, findSandboxId, freeName, sweepNames } from "./ledger/names.js";
export type { Exposure, RecordState, SandboxRecord, SandboxRules } from "./ledger/record.js";
export {
  addResource,
  createRecord,
  dropResources,
  listRecords,
  markReady,
  readRecord,
  rememberedRecord,
  sweepLedger,
  updateRecord,
} from "./ledger/records.js";
export {
  inUse,
  openKeptRecord,
  type Remover,
  type RemoverOf,
  removeRecorded,
  removerFor,
} from "./ledger/remove-recorded.js";
export { findSnapshotRecord, snapshotName, withSnapshotName } from "./ledger/snapshot-name.js";
export {
  readSnapshotRecord,
  readSnapshotRecords,
  removeSnapshotRecord,
  snapshotIds,
  snapshotsDir,
  writeSnapshotRecord,
} from "./ledger/snapshot-record.js";
