import {
  CommandResult,
  CopyOptions,
  ExecuteCommandOptions,
  FileContent,
  FileEntry,
  FileStat,
  FilesystemInfo,
  InstructionsOption,
  ListOptions,
  MastraFilesystem,
  MastraFilesystemOptions,
  MastraSandbox,
  MastraSandboxOptions,
  ProcessHandle,
  ProcessInfo,
  ProviderStatus,
  ReadOptions,
  RemoveOptions,
  SandboxCloneOptions,
  SandboxFileInput,
  SandboxInfo,
  SandboxNetworking,
  SandboxProcessManager,
  SpawnProcessOptions,
  WriteOptions,
} from "@mastra/core/workspace";

declare const Base: typeof MastraFilesystem;

declare const Base$1: typeof MastraSandbox;

declare const Base$2: typeof SandboxProcessManager<RunningSandbox>;

interface DirectoryEntry extends FileStat$1 {
  name: string;
}

type FileContent$1 = string | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

interface FileStat$1 {
  type: "file" | "directory" | "symlink" | "other";
  size: number;
  mode: number;
  mtimeMs: number;
}

declare class GloveboxFilesystem extends Base {
  #private;
  readonly id: string;
  readonly name = "GloveboxFilesystem";
  readonly provider = "glovebox";
  readonly readOnly: boolean;
  status: ProviderStatus;
  constructor(options: GloveboxFilesystemOptions);
  get basePath(): string;
  override init(): Promise<void>;
  getInfo(): FilesystemInfo;
  getInstructions(): string;
  resolveAbsolutePath(path: string): string;
  readFile(path: string, options?: ReadOptions): Promise<string | Buffer>;
  writeFile(path: string, content: FileContent, options?: WriteOptions): Promise<void>;
  appendFile(path: string, content: FileContent): Promise<void>;
  deleteFile(path: string, { force }?: RemoveOptions): Promise<void>;
  copyFile(src: string, dest: string, options?: CopyOptions): Promise<void>;
  moveFile(src: string, dest: string, options?: CopyOptions): Promise<void>;
  mkdir(
    path: string,
    {
      recursive,
    }?: {
      recursive?: boolean;
    },
  ): Promise<void>;
  rmdir(path: string, { recursive, force }?: RemoveOptions): Promise<void>;
  readdir(path: string, options?: ListOptions): Promise<FileEntry[]>;
  exists(path: string): Promise<boolean>;
  stat(path: string): Promise<FileStat>;
}

interface GloveboxFilesystemOptions extends MastraFilesystemOptions {
  sandbox: GloveboxSandbox;
  id?: string;
  basePath?: string;
  readOnly?: boolean;
}

declare class GloveboxProcessManager extends Base$2 {
  override spawn(command: string, options?: GloveboxSpawnOptions): Promise<ProcessHandle>;
  override list(): Promise<ProcessInfo[]>;
  killAll(): Promise<void>;
}

declare class GloveboxSandbox extends Base$1 {
  #private;
  readonly id: string;
  readonly name = "GloveboxSandbox";
  readonly provider = "glovebox";
  status: ProviderStatus;
  readonly timeout: number | undefined;
  readonly processes: GloveboxProcessManager;
  override readonly networking: SandboxNetworking;
  constructor(options?: GloveboxSandboxOptions);
  get sandbox(): Sandbox | undefined;
  override start(): Promise<void>;
  override stop(): Promise<void>;
  override destroy(): Promise<void>;
  override executeCommand(command: string, args?: string[], options?: ExecuteCommandOptions): Promise<CommandResult>;
  override writeFiles(files: SandboxFileInput[]): Promise<void>;
  override getInfo(): SandboxInfo;
  override getInstructions({ requestContext }?: InstructionsRequest): string;
  clone({ id, sandboxId, env, workingDirectory, idleTimeoutMinutes }?: SandboxCloneOptions): GloveboxSandbox;
  whileAlive<T>(work: (sandbox: Sandbox) => Promise<T>): Promise<T>;
}

interface GloveboxSandboxOptions extends Omit<OpenOptions, "id">, Hooks {
  id?: string;
  sandboxId?: string;
  timeout?: number;
  instructions?: InstructionsOption;
}

interface GloveboxSpawnOptions extends SpawnProcessOptions {
  stdin?: "pipe" | "none";
}

type Hooks = Omit<MastraSandboxOptions, "processes">;

type InstructionsRequest = Pick<Parameters<Exclude<InstructionsOption, string>>[0], "requestContext">;

interface ProcessHandle$1 {
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

interface RunningSandbox extends MastraSandbox {
  readonly timeout: number | undefined;
  whileAlive<T>(work: (sandbox: Sandbox) => Promise<T>): Promise<T>;
}

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
  processes(): Promise<ProcessHandle$1[]>;
  process(id: string): Promise<ProcessHandle$1>;
  uploadFiles(files: readonly FileUpload[], opts?: FileCallOptions): Promise<void>;
  writeFile(path: string, content: FileContent$1, opts?: WriteFileOptions): Promise<void>;
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
  ): Promise<FileStat$1 | null>;
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

export {
  GloveboxFilesystem,
  type GloveboxFilesystemOptions,
  GloveboxProcessManager,
  GloveboxSandbox,
  type GloveboxSandboxOptions,
  type GloveboxSpawnOptions,
};
