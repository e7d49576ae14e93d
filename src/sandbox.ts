export {
  type CommandResult,
  DEFAULT_ALLOWED_COMMANDS,
  type ExecuteOptions,
  type ExecutorOptions,
  getSandboxExecutor,
  type SandboxExecutor,
} from "./sandbox/executor.js";
export { type OpenOptions, openSandbox } from "./sandbox/open.js";
export { createSandbox, type PortableOptions } from "./sandbox/portable.js";
export { listSandboxes, type ReapReport, reap, removeSandbox, type SandboxInfo } from "./sandbox/reap.js";
export { type BackendLoader, type BackendModule, registerBackend } from "./sandbox/registry.js";
export { deleteSnapshot, listSnapshots, type SnapshotInfo } from "./sandbox/snapshots.js";
