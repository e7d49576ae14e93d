export { ERROR_CODES, SandboxError, type SandboxErrorCode, type SandboxErrorDetails } from "../contracts/errors.js";
export type * from "../contracts/types.js";
export type { DaggerOptions, DaggerService } from "./sandbox/dagger.js";
export type { DaytonaOptions } from "./sandbox/daytona.js";
export { createDockerSandbox, type DockerOptions } from "./sandbox/docker.js";
export type { KubernetesOptions } from "./sandbox/kubernetes.js";
export { createLocalSandbox } from "./sandbox/local.js";
export {
  DEFAULT_OPERATION_TIMEOUT,
  DEFAULT_RUN_TIMEOUT,
  type Driver,
  type DriverExit,
  type DriverProcess,
  type FileUpload,
  type Sandbox,
  type SandboxOptions,
  type SnapshotOptions,
  type StartSpec,
} from "./sandbox/types.js";
export type { VercelOptions } from "./sandbox/vercel.js";
export * from "./sandbox.js";
export * from "./tasks.js";
export { type GitHubRepo, parseGitHubRepo } from "./util/git/github.js";
export { shellQuote } from "./util/shell.js";
