export { assertCapabilities, type CapabilityRequest } from "./sandbox/capabilities.js";
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
