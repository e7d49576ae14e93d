/** What you need to write a backend of your own. See `docs/writing-a-backend.md`. */
export type {
  Backend,
  RemoteSandboxInfo,
  RemovalOptions,
  Resource,
  SandboxEntry,
  SandboxOwner,
  SnapshotRecord,
} from "../../contracts/backend.js";
export type {
  Driver,
  DriverConnection,
  DriverExit,
  DriverProcess,
  PendingRemoval,
  StartSpec,
} from "../../contracts/driver.js";
export { SandboxError } from "../../contracts/errors.js";
export type { Finding } from "../../contracts/finding.js";
export type { Sandbox, SandboxOptions } from "../../contracts/sandbox.js";
export type { Capabilities, Changes, FileStat, LackingCapability, NetworkPolicy } from "../../contracts/types.js";
export { readSnapshotRecord, snapshotIds, writeSnapshotRecord } from "../ledger.js";
export {
  createOperations,
  fillMirror,
  forkMirror,
  type MirrorPlan,
  mirroredTree,
  nameForkedBranch,
  planMirror,
  removeGitResource,
  removeSnapshot,
  replaceFiles,
  type TreeBase,
} from "./git.js";
export { type ChannelStream, type DriverIdentity, GuestChannel, GuestDriver, guestBinary } from "./guest.js";
