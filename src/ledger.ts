export { claimRecord, dismantle, inUse, type Remover, type RemoverOf, type Vanishing } from "./ledger/dismantle.js";
export { snapshotInTime } from "./ledger/late-snapshot.js";
export type { OtherResource, RecordState, Resource, SandboxRecord } from "./ledger/record.js";
export {
  addResource,
  createRecord,
  listRecords,
  markReady,
  readRecord,
  sweepLedger,
  updateRecord,
} from "./ledger/records.js";
export {
  readSnapshotRecord,
  readSnapshotRecords,
  removeSnapshotRecord,
  type SnapshotRecord,
  snapshotIds,
  snapshotsDir,
  writeSnapshotRecord,
} from "./ledger/snapshot-record.js";
