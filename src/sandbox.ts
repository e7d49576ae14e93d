export type { Backend } from "../contracts/backend.js";
export type { Finding } from "../contracts/finding.js";
export { assertCapabilities, type CapabilityRequest } from "./sandbox/capabilities.js";
export { openNetworkJournal } from "./sandbox/egress.js";
export {
  type CommandResult,
  DEFAULT_ALLOWED_COMMANDS,
  type ExecuteOptions,
  type ExecutorOptions,
  getSandboxExecutor,
  type SandboxExecutor,
} from "./sandbox/executor.js";
export { setGuestPath } from "./sandbox/guest.js";
export { importArchive } from "./sandbox/import-archive.js";
export { type OpenOptions, openSandbox, WORKSPACE, withPreferredWorkDir } from "./sandbox/open.js";
export { createSandbox, type PortableOptions, type SandboxIdentity, type SandboxLife } from "./sandbox/portable.js";
export { assertBackend, capabilitiesOf, credentialsOf, probeBackend } from "./sandbox/probe.js";
export {
  listSandboxes,
  type ReapReport,
  reap,
  removeSandbox,
  type SandboxFilter,
  type SandboxInfo,
} from "./sandbox/reap.js";
export {
  type BackendLoader,
  backendNames,
  chooseBackend,
  loadBackend as backendOf,
  registerBackend,
} from "./sandbox/registry.js";
export { withUserConfig } from "./sandbox/settings/user-config.js";
export { deleteSnapshot, listSnapshots, type SnapshotInfo } from "./sandbox/snapshots.js";
