import type { SnapshotRecord } from "../../../../contracts/backend.js";
import type { SandboxHead } from "../live-tree.js";

/** The details in the record of a snapshot that is a commit. */
export interface SnapshotDetails {
  /** What the files belong to. They can only be restored there. */
  source: string;
  head?: SandboxHead;
  /** The commit that the sandbox started from. Absent: it has no repository, or an older version wrote the record. */
  base?: string;
}

/** The commit that a sandbox with the files of this snapshot starts from, so that its changes are those of the snapshot, too. */
export function baseOfSnapshot(record: SnapshotRecord | undefined): string | undefined {
  return (record?.details as SnapshotDetails | undefined)?.base;
}
