import { McpSdkServerConfigWithInstance, SpawnOptions, SpawnedProcess } from "@anthropic-ai/claude-agent-sdk";

interface ClaudeCodeOptions {
  executable?: string;
  env?: readonly string[];
  onStderr?(text: string): void;
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
  spawn(opts: SpawnOptions$1): Promise<SandboxProcess>;
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

interface SandboxToolSettings {
  mcpServers: Record<string, McpSdkServerConfigWithInstance>;
  tools: string[];
  toolAliases: Record<string, string>;
  allowedTools: string[];
  disallowedTools: string[];
}

interface SpawnOptions$1 extends Omit<ExecOptions, "stdin" | "maxOutput" | "raw" | "check"> {
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

interface ToolOptions {
  timeout?: number;
  maxOutput?: number;
}

declare function createSandboxTools(sandbox: Sandbox, options?: ToolOptions): SandboxToolSettings;

declare function spawnInSandbox(
  sandbox: Sandbox,
  options?: ClaudeCodeOptions,
): (request: SpawnOptions) => SpawnedProcess;

export { type ClaudeCodeOptions, type SandboxToolSettings, createSandboxTools, spawnInSandbox };
