interface Backend {
  readonly name: string;
  capabilities(opts?: SandboxOptions): Capabilities;
  canOpenNetwork?(opts: SandboxOptions): boolean;
  readonly defaultNetwork?: NetworkPolicy;
  readonly defaultImage?: string;
  images?(opts: SandboxOptions): readonly (string | undefined)[];
  unsafeOptions?(opts: SandboxOptions): readonly string[];
  readonly options?: {
    parse(value: unknown): unknown;
  };
  check?(opts: SandboxOptions): void;
  resolveOptions?(opts: SandboxOptions): SandboxOptions;
  readonly credentials?: readonly (readonly string[])[];
  secrets?(opts: SandboxOptions): readonly (string | undefined)[];
  readonly startsFromSnapshots?: boolean;
  create(opts: SandboxOptions, entry: SandboxEntry): Promise<Driver>;
  reopen?(plan: unknown, opts: SandboxOptions, entry: SandboxEntry): Promise<Driver>;
  removeResource(resource: Resource, how: RemovalOptions): Promise<void> | Promise<PendingRemoval | undefined>;
  removeSnapshot?(record: SnapshotRecord): Promise<void>;
  list?(): Promise<RemoteSandboxInfo[]>;
  sweep?(opts: { dryRun?: boolean; options?: SandboxOptions }): Promise<string[]>;
  trimCache?(maxBytes: number): Promise<string[]>;
  probe?(how?: ProbeOptions): Promise<Finding[]>;
  readonly writtenOptions?: readonly string[];
  readonly runsHere?: boolean;
  readonly prepared?: {
    readonly names: readonly string[];
    build(name: string, onLog?: (line: string) => void): Promise<boolean>;
  };
  readonly takesBaseDir?: boolean;
  readonly conformance?: {
    readonly skips?: Readonly<Record<string, string>>;
    directoryOf?(sandbox: Sandbox): string | undefined;
    readonly sharesNetwork?: boolean;
    readonly hasHttpPorts?: boolean;
  };
}

type BackendLoader = () => Promise<Backend>;

type BackendName = keyof BackendOptions;

interface BackendOptions extends GloveboxBackendOptions {}

interface Batch extends AsyncDisposable {
  readonly batchId: string;
  setupTask(setup: TaskSetup, opts?: SetupOptions): Promise<Task>;
  teardown(): Promise<void>;
}

type BlockedAnswer = "allow-once" | "allow" | "deny";

interface BlockedRequest {
  readonly host: string;
  readonly port: number;
  readonly reason: "not_allowed" | "request_not_allowed";
  readonly method?: string;
  readonly path?: string;
}

interface BuildImageSpec extends Omit<BuildStage, "parentTag" | "cacheKey"> {
  type: "build";
}

interface BuildStage {
  tag: string;
  contextPath: string;
  dockerfilePath?: string;
  buildArgs?: Readonly<Record<string, string>>;
  parentTag?: string;
  cacheKey?: string;
}

interface Capabilities {
  isolation: "none" | "namespaces" | "container" | "gvisor" | "microvm" | "remote";
  killTree: "complete" | "descendants" | "best-effort";
  network: readonly ("none" | "full" | "allow")[];
  liveNetwork?: boolean;
  networkRules?: boolean;
  limits: readonly ("memory" | "cpus" | "pids" | "disk")[];
  snapshot: "consistent" | "crash-consistent" | "none";
  fork: "copy-on-write" | "copy" | "none";
  pty: boolean;
  user: boolean;
  workDir?: boolean;
  paths?: readonly ("workdir" | "sandbox")[];
  combinedOutput?: boolean;
  secrets?: boolean;
  ports: boolean;
  git: boolean;
  keep?: "files" | "all";
  renames?: "all" | "no-directories-of-the-base";
  reasons?: Readonly<Partial<Record<LackingCapability, string>>>;
}

interface CapabilityRequest
  extends Pick<SandboxOptions, "network" | "limits" | "isolation" | "workDir" | "publish" | "paths" | "secrets"> {
  pty?: unknown;
  user?: string | undefined;
  ports?: unknown;
  output?: "separate" | "combined" | undefined;
}

interface Changes {
  patch: string;
  files: {
    path: string;
    status: "added" | "modified" | "deleted" | "renamed";
  }[];
}

interface CommandResult {
  stdout: string;
  stderr: string;
  exitCode: number;
}

interface CommandStatus {
  running: boolean;
  exitCode?: number;
  logs: string;
}

interface ContainerEngine {
  readonly name: string;
  ensureImage(request: ImageRequest, opts: ImageOptions): Promise<EngineImage>;
  arrange?(
    containers: readonly PlannedContainer[],
    network?: ContainerRequest["network"],
  ): readonly (readonly string[])[];
  createNetwork(request: NetworkRequest, signal: AbortSignal): Promise<string>;
  startContainer(request: ContainerRequest, signal: AbortSignal): Promise<EngineContainer>;
  removeContainer(name: string): Promise<void>;
  removeNetwork(name: string): Promise<void>;
  removeImage(name: string): Promise<void>;
  sweep(): Promise<unknown>;
  close(): void;
}

interface ContainerRequest {
  readonly name: string;
  readonly image: string;
  readonly hostname: string;
  readonly user: string;
  readonly workingDir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly limits: Omit<Limits, "disk">;
  readonly labels: Readonly<Record<string, string>>;
  readonly network?: Pick<NetworkRequest, "name" | "internal">;
  readonly isService: boolean;
  onWarning(message: string): void;
}

interface ContainerSetup {
  name: string;
  spec: ContainerSpec;
}

interface ContainerSpec {
  imageSpec: ImageSpec;
  hostname?: string;
  environment?: Readonly<Record<string, string>>;
  command?: string | readonly string[];
  user?: string;
  limits?: Omit<Limits, "disk">;
  waitFor?: WaitFor;
}

declare const DEFAULT_ALLOWED_COMMANDS: readonly string[];

declare const DEFAULT_OPERATION_TIMEOUT = 6e5;

declare const DEFAULT_RUN_TIMEOUT = 36e5;

interface DaggerOptions {
  cli?: string;
  session?: {
    port: number;
    token: string;
  };
  setup?: readonly (readonly string[])[];
  services?: Readonly<Record<string, DaggerService>>;
  secrets?: Readonly<Record<string, string>>;
  linger?: number;
  sdk?: unknown;
}

interface DaggerService {
  image: string;
  args?: readonly string[];
  env?: Readonly<Record<string, string>>;
  ports?: readonly number[];
}

interface DaytonaOptions {
  apiKey?: string;
  apiUrl?: string;
  target?: string;
  snapshot?: string;
  resources?: {
    cpu?: number;
    memory?: number;
    disk?: number;
  };
  autoStopMinutes?: number;
  ttlMinutes?: number;
  client?: unknown;
}

interface DirectoryEntry extends FileStat {
  name: string;
}

interface DockerOptions {
  host?: string;
  context?: string;
  certPath?: string;
  workDir?: string;
  user?: string;
  hostname?: string;
  pull?: "missing" | "never";
  guest?: "bind" | "volume";
  unsafe?: {
    mounts?: boolean;
    privileged?: boolean;
    dockerSocket?: boolean;
    hostNetwork?: boolean;
    hostPid?: boolean;
    hostIpc?: boolean;
    devices?: readonly string[];
    capabilities?: readonly string[];
  };
}

interface Driver extends FileCalls {
  readonly backend: string;
  readonly id: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
  readonly hostDir?: string;
  readonly baseEnv: Readonly<Record<string, string>>;
  readonly anywhere?: FileCalls;
  onWarning?: (message: string) => void;
  onLost?: () => void;
  start(spec: StartSpec): Promise<DriverProcess>;
  readonly startsServices?: boolean;
  snapshot?(signal?: AbortSignal): Promise<string>;
  restore?(id: string): Promise<void>;
  fork?(count: number): Promise<Driver[]>;
  changes?(): Promise<Changes>;
  readonly git?: {
    pushBranch(
      branch: string,
      token: string,
      opts?: PushOptions,
    ): Promise<{
      pushed: boolean;
      error?: string;
    }>;
    defaultBranch(): Promise<string>;
  };
  url?(port: number): Promise<string | undefined>;
  connect?(port: number, signal: AbortSignal): Promise<DriverConnection>;
  waitForPort?(port: number, timeout: number, signal: AbortSignal): Promise<boolean>;
  openNetwork?(allow: readonly string[]): Promise<NetworkWindow>;
  setNetwork?(network: NetworkPolicy): Promise<{
    readonly env: Readonly<Record<string, string>>;
  }>;
  setSecrets?(
    secrets: Readonly<Record<string, SecretRule>>,
    signal: AbortSignal,
  ): Promise<{
    readonly env: Readonly<Record<string, string>>;
    readonly gone: readonly string[];
  }>;
  close(): Promise<void> | Promise<PendingRemoval | undefined>;
}

interface DriverCallOptions {
  readonly signal?: AbortSignal;
}

interface DriverConnection {
  readonly input: AsyncIterable<Uint8Array>;
  write(chunk: Uint8Array): Promise<void>;
  end(): Promise<void>;
  destroy(): void;
}

interface DriverExit {
  exitCode: number;
  signal?: string;
  oomKilled?: boolean;
  timedOut?: boolean;
  leftOut?: {
    stdout: number;
    stderr: number;
  };
}

interface DriverFile {
  readonly path: string;
  readonly content: Uint8Array;
  readonly mode: number | undefined;
}

interface DriverFileStream {
  readonly path: string;
  readonly source: AsyncIterable<Uint8Array>;
  readonly mode: number | undefined;
}

interface DriverProcess {
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly stderr: AsyncIterable<Uint8Array>;
  writeStdin(chunk: Uint8Array): Promise<void>;
  closeStdin(): Promise<void>;
  kill(signal: string): Promise<void>;
  wait(): Promise<DriverExit>;
  resize?(cols: number, rows: number): Promise<void>;
}

declare const ERROR_CODES: readonly [
  "path_confinement",
  "invalid_argument",
  "invalid_path",
  "not_regular_file",
  "not_found",
  "command_not_allowed",
  "command_failed",
  "unsupported",
  "unauthenticated",
  "permission_denied",
  "unavailable",
  "backend_lost",
  "aborted",
  "limit_exceeded",
  "no_space",
  "conflict",
  "missing_dependency",
  "no_isolation",
  "closed",
  "tampered",
  "internal",
];

interface EngineContainer {
  readonly id: string;
  readonly sandbox: Sandbox;
  start(argv: readonly string[]): Promise<DriverProcess>;
  commit(image: string, labels: Readonly<Record<string, string>>): Promise<void>;
  copyFrom(origin: EngineContainer, path: string): Promise<void>;
  frozen<T>(work: () => Promise<T>): Promise<T>;
  remove(): Promise<void>;
}

interface EngineImage {
  readonly id: string;
  readonly env: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  readonly workingDir: string;
  readonly user: string;
  readonly healthcheck?: {
    readonly argv: readonly string[];
    readonly timeout?: number;
  };
  readonly volumes: readonly string[];
}

interface ExecOptions {
  argv: readonly string[];
  cwd?: string;
  env?: Readonly<Record<string, string>>;
  stdin?: string | Uint8Array | AsyncIterable<Uint8Array>;
  timeout?: number;
  killGrace?: number;
  maxOutput?: number;
  raw?: boolean;
  check?: boolean;
  output?: "separate" | "combined";
  user?: string;
  signal?: AbortSignal;
  onStdout?(chunk: Uint8Array): void | Promise<void>;
  onStderr?(chunk: Uint8Array): void | Promise<void>;
}

interface ExecResult {
  exitCode: number;
  signal?: string;
  stdout: string;
  stderr: string;
  truncated: {
    stdout: boolean;
    stderr: boolean;
  };
  bytes: {
    stdout: number;
    stderr: number;
  };
  raw?: {
    stdout: Uint8Array;
    stderr: Uint8Array;
  };
  durationMs: number;
  timedOut: boolean;
  oomKilled?: boolean;
}

interface ExecuteOptions {
  cwd?: string;
  env?: Record<string, string>;
  timeout?: number;
  sudo?: boolean;
}

interface ExecutorOptions
  extends BackendOptions,
    Pick<OpenOptions, "backend" | "allow" | "isolation" | "network" | "env" | "image"> {
  timeout?: number;
}

interface FileCallOptions {
  signal?: AbortSignal;
}

interface FileCalls {
  read(path: string, opts?: DriverCallOptions): Promise<Uint8Array | null>;
  write(files: readonly DriverFile[], opts?: DriverCallOptions): Promise<void>;
  stat(path: string, opts?: DriverCallOptions): Promise<FileStat | null>;
  list(path: string, opts?: DriverCallOptions): Promise<string[]>;
  remove(
    path: string,
    opts: DriverCallOptions & {
      recursive: boolean;
    },
  ): Promise<boolean>;
  rename(from: string, to: string, opts?: DriverCallOptions): Promise<void>;
  makeDirectory(path: string, opts?: DriverCallOptions): Promise<void>;
  listDetails?(path: string, opts?: DriverCallOptions): Promise<DirectoryEntry[]>;
  statTarget?(path: string, opts?: DriverCallOptions): Promise<FileStat | null>;
  removeDirectory?(path: string, opts?: DriverCallOptions): Promise<boolean>;
  copy?(
    from: string,
    to: string,
    opts: DriverCallOptions & {
      recursive: boolean;
    },
  ): Promise<void>;
  append?(file: DriverFile, opts?: DriverCallOptions): Promise<void>;
  readStream?(
    path: string,
    opts: DriverCallOptions & {
      start: number;
      length?: number;
    },
  ): Promise<AsyncIterable<Uint8Array> | null>;
  writeStream?(file: DriverFileStream, opts?: DriverCallOptions): Promise<void>;
  importTree(tar: AsyncIterable<Uint8Array>, path: string, opts?: DriverCallOptions): Promise<void>;
  exportTree(path: string): AsyncIterable<Uint8Array>;
}

type FileContent = string | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

interface FileStat {
  type: "file" | "directory" | "symlink" | "other";
  size: number;
  mode: number;
  mtimeMs: number;
}

interface FileTask {
  readonly setup: TaskSetup;
  readonly run?: string | readonly string[];
  readonly timeout?: number;
}

interface FileUpload {
  path: string;
  content: string | Uint8Array;
  mode?: number;
}

interface Finding {
  readonly name: string;
  readonly status: "ok" | "limited" | "missing" | "unused";
  readonly detail: string;
  readonly fix?: string;
  readonly manifest?: string;
}

interface ForkOptions<D extends Driver> {
  readonly atOnce?: boolean;
  around?(makeAll: () => Promise<void>): Promise<void>;
  complete?(forks: readonly D[]): Promise<void>;
}

interface GitHubRepo {
  owner: string;
  name: string;
}

interface ImageOptions {
  readonly verifyOnly: boolean;
  readonly signal: AbortSignal;
  onProgress(
    message: string,
    progress?: {
      readonly current: number;
      readonly total: number;
    },
  ): void;
}

interface ImageRequest {
  readonly tag: string;
  readonly build?: BuildStage;
  readonly parentId?: string;
  readonly isRun: boolean;
}

type ImageSpec = PullImageSpec | BuildImageSpec | MultiStageBuildImageSpec;

declare class JournalReader {
  #private;
  constructor(directory: string);
  read(): NetworkEvent[];
  close(): void;
}

interface KubernetesOptions {
  context?: string;
  kubeconfig?: string;
  namespace?: string;
  image?: string;
  runtimeClassName?: string;
  serviceAccount?: string;
  nodeSelector?: Readonly<Record<string, string>>;
  tolerations?: readonly KubernetesToleration[];
  resources?: Readonly<Record<string, string>>;
  podTemplate?: KubernetesPodTemplate;
  warmPool?: string;
  workDir?: string;
  user?: string;
  lease?: number;
}

interface KubernetesPodTemplate {
  metadata?: {
    labels?: Readonly<Record<string, string>>;
    annotations?: Readonly<Record<string, string>>;
  };
  spec?: Readonly<Record<string, unknown>>;
}

interface KubernetesToleration {
  key?: string;
  operator?: "Equal" | "Exists";
  value?: string;
  effect?: "NoSchedule" | "PreferNoSchedule" | "NoExecute";
  tolerationSeconds?: number;
}

type LackingCapability =
  | `limits.${keyof Limits}`
  | `network.${"none" | "full" | "allow"}`
  | "liveNetwork"
  | "networkRules"
  | "snapshot"
  | "fork"
  | "pty"
  | "user"
  | "workDir"
  | "paths"
  | "combinedOutput"
  | "secrets"
  | "ports"
  | "git"
  | "keep";

interface Limits {
  memory?: number;
  cpus?: number;
  pids?: number;
  disk?: number;
}

type ManagerFactory = (opts: ManagerOptions) => SandboxManager;

type ManagerLoader = () => Promise<{
  createManager: ManagerFactory;
}>;

interface ManagerOptions extends ManagerSettings {
  backend?: string;
  docker?: {
    host?: string;
    context?: string;
    certPath?: string;
  };
  kubernetes?: Omit<KubernetesOptions, "image" | "workDir">;
}

interface ManagerSettings {
  networkEnabled?: boolean;
  batchIdPrefix?: string;
  concurrency?: number;
  verifyOnly?: boolean;
  onEvent?(event: TaskEvent): void;
}

interface Mount {
  source: string;
  target?: string;
  writable?: boolean;
}

interface MultiStageBuildImageSpec {
  type: "multi-stage";
  stages: readonly BuildStage[];
  finalTag: string;
}

interface NetworkConfig {
  name: string;
  internal?: boolean;
}

interface NetworkEvent {
  readonly version: 1;
  readonly time: string;
  readonly sandbox: string;
  readonly connection: number;
  readonly event: "open" | "request" | "close" | "blocked";
  readonly decision: "allowed" | "denied";
  readonly rule: string;
  readonly host: string;
  readonly port?: number;
  readonly method?: string;
  readonly secrets?: readonly string[];
  readonly sent?: number;
  readonly received?: number;
  readonly durationMs?: number;
}

type NetworkPolicy = "none" | "full" | NetworkRules;

interface NetworkRequest {
  readonly name: string;
  readonly internal: boolean;
  readonly members: number;
  readonly labels: Readonly<Record<string, string>>;
}

interface NetworkRule {
  host: string;
  port?: number;
  methods?: readonly string[];
  paths?: readonly string[];
  git?: "fetch" | "push";
  private?: boolean;
  plain?: boolean;
}

interface NetworkRules {
  allow: readonly (string | NetworkRule)[];
  deny?: readonly (string | NetworkRule)[];
  upstream?: string;
  ca?: string;
}

interface NetworkWindow extends AsyncDisposable {
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

interface OpenOptions extends SandboxOptions {
  backend?: BackendName | (string & {});
}

type Options = SandboxOptions & {
  backend?: string;
};

interface PendingRemoval {
  gone: Promise<void>;
}

interface PlannedContainer extends Omit<ContainerRequest, "labels" | "network" | "onWarning"> {
  readonly command: readonly string[] | undefined;
}

interface PortableOptions
  extends Pick<
    SandboxOptions,
    | ("operationTimeout" | "maxOutput" | "env" | "allow" | "publish" | "onEvent" | "githubToken")
    | ("ttl" | "idleTimeout" | "paths")
  > {
  expiresAt?: string | undefined;
}

interface ProbeOptions {
  readonly options?: SandboxOptions;
  readonly isThorough?: boolean;
}

interface ProcessExit {
  exitCode: number;
  signal?: string;
  timedOut: boolean;
  durationMs: number;
  oomKilled?: boolean;
}

interface ProcessHandle {
  readonly id: string;
  readonly argv: string[];
  readonly startedAt: string;
  readonly state: "running" | "ended";
  readonly exit?: ProcessExit | undefined;
  read(opts?: ReadOutputOptions): Promise<ProcessOutput>;
  attach(): Promise<SandboxProcess>;
  kill(signal?: string): Promise<void>;
  wait(): Promise<ProcessExit>;
}

interface ProcessOutput {
  data: Uint8Array;
  cursor: number;
  missed: number;
  ended: boolean;
}

type ProcessStream = "stdout" | "stderr";

interface PullImageSpec {
  type: "pull";
  tag: string;
}

interface PushOptions {
  message?: string;
  server?: string;
}

interface ReadOutputOptions {
  cursor?: number;
  stream?: ProcessStream;
  maxBytes?: number;
  wait?: number;
  signal?: AbortSignal;
}

interface ReadStreamOptions extends FileCallOptions {
  start?: number;
  end?: number;
}

interface ReapOptions {
  onEvent?(event: SandboxEvent): void;
  dryRun?: boolean;
  cache?: number;
  backend?: string;
  signal?: AbortSignal;
}

interface ReapReport {
  removed: string[];
  kept: string[];
  failed: {
    id: string;
    error: SandboxError;
  }[];
  swept?: string[];
  cache?: string[];
}

type RecordState = (typeof STATES)[number];

interface RemoteSandboxInfo {
  readonly id: string;
  readonly owner: SandboxOwner;
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly keep: boolean;
  readonly createdAt?: string;
  remove(): Promise<void>;
}

interface RemovalOptions {
  readonly patience: number;
  readonly beside: readonly string[];
}

interface Resource {
  readonly kind: string;
  readonly [field: string]: unknown;
}

declare const STATES: readonly ["creating", "ready", "kept", "removing"];

interface Sandbox extends AsyncDisposable {
  readonly id: string;
  readonly name?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAt: string;
  readonly backend: string;
  readonly workDir: string;
  readonly hostDir?: string;
  readonly capabilities: Capabilities;
  readonly published: readonly number[];
  exec(opts: ExecOptions): Promise<ExecResult>;
  exec(program: string, args?: readonly string[], opts?: Omit<ExecOptions, "argv">): Promise<ExecResult>;
  shell(
    script: string,
    opts?: Omit<ExecOptions, "argv"> & {
      shellPath?: string;
    },
  ): Promise<ExecResult>;
  spawn(opts: SpawnOptions): Promise<SandboxProcess>;
  processes(): Promise<ProcessHandle[]>;
  process(id: string): Promise<ProcessHandle>;
  uploadFiles(files: readonly FileUpload[], opts?: FileCallOptions): Promise<void>;
  writeFile(path: string, content: FileContent, opts?: WriteFileOptions): Promise<void>;
  writeFiles(files: Readonly<Record<string, string | Uint8Array>>, opts?: FileCallOptions): Promise<void>;
  appendFile(path: string, content: string | Uint8Array, opts?: WriteFileOptions): Promise<void>;
  readFile(path: string, opts?: FileCallOptions): Promise<string | null>;
  readBytes(path: string, opts?: FileCallOptions): Promise<Uint8Array | null>;
  readStream(path: string, opts?: ReadStreamOptions): Promise<ReadableStream<Uint8Array> | null>;
  exists(path: string, opts?: FileCallOptions): Promise<boolean>;
  stat(
    path: string,
    opts?: FileCallOptions & {
      follow?: boolean;
    },
  ): Promise<FileStat | null>;
  listDirectory(
    path?: string,
    opts?: FileCallOptions & {
      details?: false;
    },
  ): Promise<string[]>;
  listDirectory(
    path: string,
    opts: FileCallOptions & {
      details: true;
    },
  ): Promise<DirectoryEntry[]>;
  deleteFile(path: string, opts?: FileCallOptions): Promise<boolean>;
  remove(
    path: string,
    opts?: FileCallOptions & {
      recursive?: boolean;
    },
  ): Promise<boolean>;
  rename(from: string, to: string, opts?: FileCallOptions): Promise<void>;
  copy(
    from: string,
    to: string,
    opts?: FileCallOptions & {
      recursive?: boolean;
    },
  ): Promise<void>;
  makeDirectory(path: string, opts?: FileCallOptions): Promise<void>;
  setWorkdir(path: string, opts?: FileCallOptions): Promise<void>;
  exportDirectory(sandboxPath: string, hostPath: string, opts?: FileCallOptions): Promise<string>;
  downloadDirectory(sandboxPath: string, hostPath: string, opts?: FileCallOptions): Promise<string>;
  refreshFromHost(hostPath: string, sandboxPath: string, opts?: UploadOptions): Promise<void>;
  uploadDirectory(hostPath: string, sandboxPath: string, opts?: UploadOptions): Promise<void>;
  snapshot(opts?: SnapshotOptions): Promise<string>;
  restore(idOrName: string): Promise<void>;
  fork(): Promise<Sandbox>;
  fork(opts: { count: number }): Promise<Sandbox[]>;
  changes(): Promise<Changes>;
  pushBranch(
    branch: string,
    token: string,
    opts?: PushOptions,
  ): Promise<{
    pushed: boolean;
    error?: string;
  }>;
  defaultBranch(): Promise<string>;
  url(port: number): Promise<string>;
  waitForPort(port: number, opts?: WaitForPortOptions): Promise<void>;
  openNetwork(allow: readonly string[]): Promise<NetworkWindow>;
  setNetwork(network: Exclude<NetworkPolicy, "full">): Promise<void>;
  setSecrets(secrets: Readonly<Record<string, SecretRule>>): Promise<void>;
  teardown(): Promise<void>;
}

interface SandboxEntry {
  readonly id: string;
  readonly name?: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly keep: boolean;
  readonly keepsAll: boolean;
  readonly directory: string;
  readonly expiresAt?: string;
  readonly snapshot?: SnapshotRecord;
  readonly signal: AbortSignal;
  readonly resources: readonly Resource[];
  createRecord(first: { workDir?: string; resources?: readonly Resource[] }): Promise<void>;
  record(...resources: readonly Resource[]): Promise<void>;
  forget(isGone: (resource: Resource) => boolean): Promise<void>;
  savePlan(plan: unknown): Promise<void>;
  readonly network: NetworkPolicy;
  saveNetwork(network: NetworkPolicy): Promise<void>;
  readonly secrets: Readonly<Record<string, SecretRule>>;
  saveSecrets(secrets: Readonly<Record<string, SecretRule>>): Promise<void>;
  checkNetwork(network: NetworkPolicy): Promise<void>;
  warn(message: string): void;
  progress(message: string): void;
  discard(): void;
  fork<D extends Driver>(
    count: number,
    create: (entry: SandboxEntry, n: number) => Promise<D>,
    opts?: ForkOptions<D>,
  ): Promise<D[]>;
}

declare class SandboxError extends Error {
  override readonly name = "SandboxError";
  readonly code: SandboxErrorCode;
  backend: string | undefined;
  operation: string | undefined;
  readonly retryable: boolean;
  readonly hint: string | undefined;
  readonly partial: unknown;
  readonly result: ExecResult | undefined;
  constructor(code: SandboxErrorCode, message: string, details?: SandboxErrorDetails);
}

type SandboxErrorCode = (typeof ERROR_CODES)[number];

interface SandboxErrorDetails {
  backend?: string | undefined;
  operation?: string | undefined;
  retryable?: boolean | undefined;
  cause?: unknown;
  hint?: string | undefined;
  partial?: unknown;
  result?: ExecResult | undefined;
}

interface SandboxEvent {
  type: "progress" | "created" | "exec" | "exit" | "warning" | "snapshot" | "teardown" | "leak";
  sandboxId: string;
  backend: string;
  message: string;
  time: string;
}

interface SandboxExecutor {
  execute(command: string, args?: readonly string[], options?: ExecuteOptions): Promise<CommandResult>;
  writeFile(path: string, content: string | Uint8Array): Promise<void>;
  readFile(path: string): Promise<string | null>;
  listFiles(path?: string): Promise<string[]>;
  cleanup(): Promise<void>;
}

interface SandboxFilter {
  name?: string;
  labels?: Readonly<Record<string, string>>;
}

interface SandboxIdentity {
  readonly name?: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAt: string;
}

interface SandboxInfo {
  id: string;
  name?: string;
  labels?: Readonly<Record<string, string>>;
  state: RecordState | "damaged";
  backend?: string;
  workDir?: string;
  hostDir?: string;
  createdAt?: string;
  expiresAt?: string;
  alive: boolean;
}

interface SandboxLife {
  close(driver: Driver, isExpired: boolean): Promise<void>;
  identify?(driver: Driver): SandboxIdentity | undefined;
  checkNetwork?(network: unknown): Promise<void>;
  opened?(sandbox: Sandbox, driver: Driver): void;
}

interface SandboxManager {
  setupBatch(tasks: readonly TaskSetup[], opts?: SetupOptions): Promise<Batch>;
  setupTask(setup: TaskSetup, opts?: SetupOptions): Promise<Task>;
  exec(containerId: string, cmd: string | readonly string[], opts?: TaskExecOptions): Promise<ExecResult>;
  cloneSandboxState(state: SandboxState, opts?: SetupOptions): Promise<Task>;
}

interface SandboxOptions extends BackendOptions {
  repo?: string;
  branch?: string;
  baseDir?: string;
  workspace?: "worktree" | "overlay" | "copy";
  workDir?: string;
  paths?: "workdir" | "sandbox";
  image?: string;
  snapshot?: string;
  id?: string;
  name?: string;
  ifExists?: "fail" | "reopen";
  labels?: Readonly<Record<string, string>>;
  keep?: boolean | "all";
  ttl?: number;
  idleTimeout?: number;
  operationTimeout?: number;
  runTimeout?: number;
  maxOutput?: number;
  env?: Readonly<Record<string, string>>;
  allow?: readonly string[];
  network?: NetworkPolicy;
  secrets?: Readonly<Record<string, SecretRule>>;
  limits?: Limits;
  isolation?: "required" | "none";
  mounts?: readonly Mount[];
  publish?: readonly number[];
  signal?: AbortSignal;
  onEvent?(event: SandboxEvent): void;
  onBlocked?(request: BlockedRequest): BlockedAnswer | Promise<BlockedAnswer>;
  audit?: string;
  githubToken?: string;
  gitFilters?: readonly string[];
  gitAlternates?: readonly string[];
}

interface SandboxOwner {
  readonly bootId: string;
  readonly pidNs: string;
  readonly pid: number;
  readonly startTime: string;
  readonly host?: string;
}

interface SandboxProcess extends AsyncDisposable {
  readonly id: string;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  readonly stdin?: WritableStream<Uint8Array>;
  kill(signal?: string): Promise<void>;
  wait(): Promise<ProcessExit>;
  resize?(cols: number, rows: number): Promise<void>;
}

interface SandboxState {
  readonly taskId: string;
  readonly agentContainerId: string;
  readonly serviceContainers: Readonly<Record<string, string>>;
  readonly executionId: string;
  readonly networkId?: string;
}

interface SecretRule {
  hosts: readonly string[];
  header?: string;
  in?: "header" | "query" | "body";
  from?: SecretSource;
  sign?: "aws";
  login?: {
    tokenUrls: readonly string[];
  };
  git?: string;
  prefix?: string;
  force?: boolean;
}

type SecretSource =
  | {
      env: string;
    }
  | {
      file: string;
    }
  | {
      command: readonly string[];
      timeout?: number;
    }
  | {
      google: {
        file: string;
        scopes?: readonly string[];
      };
    }
  | {
      oauth: {
        store: string;
        tokenUrl: string;
        clientId?: string;
        scope?: string;
      };
    };

interface SetupOptions {
  signal?: AbortSignal;
}

type SnapshotInfo = Omit<SnapshotRecord, "version" | "details">;

interface SnapshotOptions {
  name?: string;
  signal?: AbortSignal;
}

interface SnapshotRecord {
  readonly version: 1;
  readonly id: string;
  readonly name?: string;
  readonly sandboxId: string;
  readonly backend: string;
  readonly createdAt: string;
  readonly repo?: string;
  readonly workDir?: string;
  readonly gitDir?: string;
  readonly ref?: string;
  readonly commit?: string;
  readonly archive?: string;
  readonly details?: unknown;
}

interface SpawnOptions extends Omit<ExecOptions, "stdin" | "maxOutput" | "raw" | "check"> {
  stdin?: "pipe" | "none";
  pty?: {
    cols: number;
    rows: number;
  };
  background?: boolean;
  service?: {
    hostname: string;
    ports: readonly number[];
  };
}

interface StartSpec {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly anywhere?: true;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: "pipe" | "none";
  readonly pty?: {
    cols: number;
    rows: number;
  };
  readonly user?: string;
  readonly combined?: true;
  readonly timeout?: number;
  readonly kept?: {
    readonly stdout?: number;
    readonly stderr?: number;
  };
  readonly signal?: AbortSignal;
  readonly service?: NonNullable<SpawnOptions["service"]>;
}

interface Task extends AsyncDisposable {
  readonly taskId: string;
  readonly state: SandboxState;
  readonly agent: Sandbox;
  readonly services: Readonly<Record<string, Sandbox>>;
  status(service?: string): CommandStatus;
  teardown(): Promise<void>;
}

interface TaskEvent {
  type:
    | "image-pull"
    | "image-build"
    | "image-ready"
    | "task-ready"
    | "task-cloned"
    | "task-down"
    | "command-exit"
    | "warning"
    | "leak";
  message: string;
  batchId: string;
  taskId?: string;
  container?: string;
  image?: string;
  progress?: {
    current: number;
    total: number;
  };
  time: string;
}

interface TaskExecOptions
  extends Pick<
    ExecOptions,
    "stdin" | "cwd" | "env" | "user" | "timeout" | "signal" | "maxOutput" | "raw" | "onStdout" | "onStderr"
  > {
  shellPath?: string;
}

interface TaskFile {
  readonly networkEnabled: boolean;
  readonly batchIdPrefix?: string;
  readonly tasks: readonly FileTask[];
}

interface TaskFileOptions {
  trust?: boolean;
}

interface TaskSetup {
  taskId: string;
  agentContainer: ContainerSetup;
  serviceContainers?: Readonly<Record<string, ContainerSetup>>;
  networkConfig?: NetworkConfig;
}

interface UploadOptions extends FileCallOptions {
  select?(path: string): boolean;
}

interface VercelOptions {
  token?: string;
  teamId?: string;
  projectId?: string;
  runtime?: string;
  timeout?: number;
  ports?: readonly number[];
  region?: string;
  snapshotExpiration?: number;
  fetch?: typeof globalThis extends {
    fetch: infer Fetch;
  }
    ? Fetch
    : unknown;
  sdk?: unknown;
}

declare const WORKSPACE = "/workspace";

interface WaitFor {
  port?: number;
  log?: string;
  command?: string | readonly string[];
  health?: true;
  timeout?: number;
}

interface WaitForPortOptions {
  timeout?: number;
  signal?: AbortSignal;
}

interface WriteFileOptions extends FileCallOptions {
  mode?: number;
}

declare function assertBackend(name: string, opts: SandboxOptions): Promise<void>;

declare function assertCapabilities(opts: CapabilityRequest, capabilities: Capabilities, backend: string): void;

declare function backendNames(): string[];

declare function capabilitiesOf(name: string): Promise<Capabilities | undefined>;

declare function chooseBackend(env: Readonly<Record<string, string | undefined>>): string;

declare function createContainerManager(
  open: () => ContainerEngine | Promise<ContainerEngine>,
  settings?: ManagerSettings,
): SandboxManager;

declare function createDockerSandbox(opts?: SandboxOptions): Promise<Sandbox>;

declare function createLocalSandbox(opts?: SandboxOptions): Promise<Sandbox>;

declare function createSandbox(driver: Driver, opts?: PortableOptions, life?: SandboxLife): Sandbox;

declare function createSandboxManager(opts?: ManagerOptions): SandboxManager;

declare function credentialsOf(name: string): Promise<readonly (readonly string[])[]>;

declare function deleteSnapshot(idOrName: string): Promise<void>;

declare function getSandboxExecutor(opts?: ExecutorOptions): SandboxExecutor;

declare global {
  interface GloveboxBackendOptions {}
}

declare global {
  interface GloveboxBackendOptions {
    dagger?: DaggerOptions;
  }
}

declare global {
  interface GloveboxBackendOptions {
    daytona?: DaytonaOptions;
  }
}

declare global {
  interface GloveboxBackendOptions {
    docker?: DockerOptions;
  }
}

declare global {
  interface GloveboxBackendOptions {
    kubernetes?: KubernetesOptions;
  }
}

declare global {
  interface GloveboxBackendOptions {
    vercel?: VercelOptions;
  }
}

declare function importArchive(sandbox: Sandbox, archive: string, inside: string): Promise<void>;

declare function listSandboxes(filter?: SandboxFilter): Promise<SandboxInfo[]>;

declare function listSnapshots(opts?: { name?: string }): Promise<SnapshotInfo[]>;

declare function loadBackend(name: string): Promise<Backend>;

declare function managerNames(): string[];

declare function openNetworkJournal(id: string): JournalReader;

declare function openSandbox(opts?: OpenOptions): Promise<Sandbox>;

declare function parseFileTask(value: unknown, path: string, opts?: TaskFileOptions): FileTask;

declare function parseGitHubRepo(repo: string): GitHubRepo;

declare function parseTaskFile(text: string, path: string, opts?: TaskFileOptions): Promise<TaskFile>;

declare function placeOptions(
  backend: string | undefined,
  sandbox: Readonly<Record<string, unknown>>,
): Pick<ManagerOptions, "docker" | "kubernetes">;

declare function probeBackend(name: string, how?: ProbeOptions): Promise<Finding[]>;

declare function readTaskFile(path: string, opts?: TaskFileOptions): Promise<TaskFile>;

declare function reap(opts?: ReapOptions): Promise<ReapReport>;

declare function registerBackend(name: string, load: BackendLoader): void;

declare function registerManager(name: string, load: ManagerLoader): void;

declare function removeSandbox(id: string): Promise<void>;

declare function setGuestPath(path: string): void;

declare function shellQuote(argv: readonly string[]): string;

declare function withPreferredWorkDir<
  T extends SandboxOptions & {
    backend?: string;
  },
>(options: T, place: string): Promise<T>;

declare function withUserConfig<T extends Options>(options: T): Promise<T>;

export {
  Backend,
  BackendLoader,
  Batch,
  type BlockedAnswer,
  type BlockedRequest,
  BuildImageSpec,
  type BuildStage,
  Capabilities,
  CapabilityRequest,
  Changes,
  CommandResult,
  CommandStatus,
  ContainerEngine,
  ContainerRequest,
  ContainerSetup,
  ContainerSpec,
  DEFAULT_ALLOWED_COMMANDS,
  DEFAULT_OPERATION_TIMEOUT,
  DEFAULT_RUN_TIMEOUT,
  type DaggerOptions,
  type DaggerService,
  type DaytonaOptions,
  DirectoryEntry,
  type DockerOptions,
  type Driver,
  type DriverExit,
  type DriverProcess,
  ERROR_CODES,
  EngineContainer,
  EngineImage,
  ExecOptions,
  ExecResult,
  ExecuteOptions,
  ExecutorOptions,
  FileCallOptions,
  FileContent,
  FileStat,
  FileTask,
  type FileUpload,
  Finding,
  type GitHubRepo,
  ImageOptions,
  ImageRequest,
  ImageSpec,
  type KubernetesOptions,
  LackingCapability,
  Limits,
  ManagerFactory,
  ManagerLoader,
  ManagerOptions,
  ManagerSettings,
  Mount,
  MultiStageBuildImageSpec,
  NetworkConfig,
  type NetworkEvent,
  type NetworkPolicy,
  NetworkRequest,
  type NetworkRule,
  type NetworkRules,
  type NetworkWindow,
  OpenOptions,
  PlannedContainer,
  PortableOptions,
  ProcessExit,
  ProcessHandle,
  ProcessOutput,
  ProcessStream,
  PullImageSpec,
  ReadOutputOptions,
  ReadStreamOptions,
  type ReapReport,
  type Sandbox,
  SandboxError,
  type SandboxErrorCode,
  type SandboxErrorDetails,
  SandboxEvent,
  SandboxExecutor,
  SandboxFilter,
  SandboxIdentity,
  type SandboxInfo,
  SandboxLife,
  SandboxManager,
  type SandboxOptions,
  SandboxProcess,
  SandboxState,
  type SecretRule,
  type SecretSource,
  SetupOptions,
  SnapshotInfo,
  type SnapshotOptions,
  SpawnOptions,
  type StartSpec,
  Task,
  TaskEvent,
  TaskExecOptions,
  TaskFile,
  TaskSetup,
  UploadOptions,
  type VercelOptions,
  WORKSPACE,
  WaitFor,
  WriteFileOptions,
  assertBackend,
  assertCapabilities,
  backendNames,
  loadBackend as backendOf,
  capabilitiesOf,
  chooseBackend,
  createContainerManager,
  createDockerSandbox,
  createLocalSandbox,
  createSandbox,
  createSandboxManager,
  credentialsOf,
  deleteSnapshot,
  getSandboxExecutor,
  importArchive,
  listSandboxes,
  listSnapshots,
  managerNames,
  openNetworkJournal,
  openSandbox,
  parseFileTask,
  parseGitHubRepo,
  parseTaskFile,
  placeOptions,
  probeBackend,
  readTaskFile,
  reap,
  registerBackend,
  registerManager,
  removeSandbox,
  setGuestPath,
  shellQuote,
  withPreferredWorkDir,
  withUserConfig,
};
