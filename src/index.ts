import type { Sandbox, SandboxOptions } from "./sandbox/types.js";

/** Opens a sandbox on this machine. The backend is loaded at the first call. */
export async function createLocalSandbox(opts: SandboxOptions = {}): Promise<Sandbox> {
  const local = await import("./sandbox/local.js");
  return local.createLocalSandbox(opts);
}

export type * from "../contracts/types.js";
export { ERROR_CODES, SandboxError, type SandboxErrorCode, type SandboxErrorDetails } from "./sandbox/errors.js";
export { DEFAULT_ALLOWED_COMMANDS } from "./sandbox/executor.js";
export { createSandbox, type PortableOptions } from "./sandbox/portable.js";
export {
  DEFAULT_OPERATION_TIMEOUT,
  DEFAULT_RUN_TIMEOUT,
  type Driver,
  type DriverExit,
  type DriverProcess,
  type FileUpload,
  type Sandbox,
  type SandboxOptions,
  type StartSpec,
} from "./sandbox/types.js";
export * from "./sandbox.js";
export { type GitHubRepo, parseGitHubRepo } from "./util/github.js";
export { shellQuote } from "./util/shell.js";
