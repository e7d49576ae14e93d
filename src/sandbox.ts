export {
  type CommandResult,
  type ExecuteOptions,
  type ExecutorOptions,
  getSandboxExecutor,
  type SandboxExecutor,
} from "./sandbox/executor.js";
export { type OpenOptions, openSandbox } from "./sandbox/open.js";
export { listSandboxes, type ReapReport, reap, type SandboxInfo } from "./sandbox/reap.js";
export { type BackendLoader, type BackendModule, registerBackend } from "./sandbox/registry.js";
