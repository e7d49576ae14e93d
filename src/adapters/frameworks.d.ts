/**
 * What the adapters use of the frameworks, which are not installed here. The published types name the real ones, and `npm run test:adapters` compiles
 * against them.
 */

declare module "@ai-sdk/harness" {
  export class HarnessCapabilityUnsupportedError extends Error {
    constructor(options: { message: string; harnessId?: string; cause?: unknown });
  }
  export class HarnessSandboxAuthenticationError extends Error {
    constructor(options: { message: string; sandboxProviderId: string; cause?: unknown });
  }
}

declare module "@langchain/core/singletons" {
  export const AsyncLocalStorageProviderSingleton: {
    getRunnableConfig(): { signal?: AbortSignal } | undefined;
  };
}

declare module "@langchain/core/tools" {
  export interface StructuredToolInterface {
    name: string;
    invoke(input: unknown, config?: unknown): Promise<unknown>;
  }
  export function tool(
    run: (input: unknown, config: { signal?: AbortSignal }) => Promise<string>,
    fields: { name: string; description: string; schema: object },
  ): StructuredToolInterface;
}

declare module "deepagents" {
  export type FileOperationError = "file_not_found" | "permission_denied" | "is_directory" | "invalid_path";
  export interface ExecuteResponse {
    output: string;
    exitCode: number | null;
    truncated: boolean;
  }
  export interface FileUploadResponse {
    path: string;
    error: FileOperationError | null;
  }
  export interface FileDownloadResponse extends FileUploadResponse {
    content: Uint8Array | null;
  }
  export abstract class BaseSandbox {
    abstract readonly id: string;
    abstract execute(command: string): Promise<ExecuteResponse>;
    abstract uploadFiles(files: [string, Uint8Array][]): Promise<FileUploadResponse[]>;
    abstract downloadFiles(paths: string[]): Promise<FileDownloadResponse[]>;
  }
  export class SandboxError extends Error {
    constructor(message: string, code: string, cause?: Error);
  }
}

declare module "@computesdk/provider" {
  export interface CommandResult {
    stdout: string;
    stderr: string;
    exitCode: number;
    durationMs: number;
  }
  export interface RunCommandOptions {
    cwd?: string;
    env?: Record<string, string>;
    timeout?: number;
    background?: boolean;
    onStdout?: (data: string) => void;
    onStderr?: (data: string) => void;
  }
  export interface CreateSandboxOptions {
    timeout?: number;
    templateId?: string;
    snapshotId?: string;
    metadata?: Record<string, unknown>;
    envs?: Record<string, string>;
    name?: string;
    directory?: string;
    image?: string;
    ports?: number[];
    signal?: AbortSignal;
  }
  export interface SandboxInfo {
    id: string;
    provider: string;
    status: "running" | "stopped" | "error";
    createdAt: Date;
    timeout: number;
    metadata?: Record<string, unknown>;
  }
  export interface FileEntry {
    name: string;
    type: "file" | "directory";
    size?: number;
    modified?: Date;
  }
  interface Found<S> {
    sandbox: S;
    sandboxId: string;
  }
  interface SnapshotInfo {
    id: string;
    provider: string;
    createdAt: Date;
    metadata?: Record<string, unknown>;
  }
  interface Methods<S, C> {
    sandbox: {
      create: (config: C, options?: CreateSandboxOptions) => Promise<Found<S>>;
      getById: (config: C, id: string) => Promise<Found<S> | null>;
      list: (config: C) => Promise<Found<S>[]>;
      destroy: (config: C, id: string) => Promise<void>;
      runCommand: (sandbox: S, command: string, options?: RunCommandOptions) => Promise<CommandResult>;
      streamCommand: (sandbox: S, command: string, options: RunCommandOptions) => Promise<CommandResult>;
      getInfo: (sandbox: S) => Promise<SandboxInfo>;
      getUrl: (sandbox: S, options: { port: number; protocol?: string }) => Promise<string>;
      filesystem: {
        readFile: (sandbox: S, path: string) => Promise<string>;
        writeFile: (sandbox: S, path: string, content: string) => Promise<void>;
        mkdir: (sandbox: S, path: string) => Promise<void>;
        readdir: (sandbox: S, path: string) => Promise<FileEntry[]>;
        exists: (sandbox: S, path: string) => Promise<boolean>;
        remove: (sandbox: S, path: string) => Promise<void>;
      };
    };
    snapshot: {
      create: (config: C, sandboxId: string, options?: { name?: string }) => Promise<SnapshotInfo>;
      list: (config: C, options?: { sandboxId?: string; limit?: number }) => Promise<SnapshotInfo[]>;
      delete: (config: C, snapshotId: string) => Promise<void>;
    };
  }
  export interface Provider<S = unknown, T = unknown, N = unknown> {
    readonly name: string;
  }
  export function defineProvider<S, C>(definition: {
    name: string;
    methods: Methods<S, C>;
  }): (config: C) => Provider<S>;
}

declare module "@google/adk" {
  export interface ExecutionResult {
    exitCode: number;
    stdout: string;
    stderr: string;
    timedOut: boolean;
  }
  export abstract class BaseEnvironment {
    protected initialized: boolean;
    initialize(): Promise<void>;
    close(): Promise<void>;
    abstract get workingDir(): string;
    abstract execute(command: string, timeoutSeconds?: number): Promise<ExecutionResult>;
    abstract readFile(filePath: string): Promise<Uint8Array>;
    abstract writeFile(filePath: string, content: string | Uint8Array): Promise<void>;
    protected assertInitialized(): void;
  }
  interface File {
    name: string;
    content: string;
    contentEncoding?: string;
    mimeType: string;
  }
  export interface ExecuteCodeParams {
    invocationContext: { session: { appName: string; userId: string; id: string } };
    codeExecutionInput: {
      code: string;
      language: string;
      inputFiles: File[];
      args?: string[] | Record<string, string | number | boolean>;
    };
  }
  export interface CodeExecutionResult {
    stdout: string;
    stderr: string;
    outputFiles: File[];
  }
  export abstract class BaseCodeExecutor {
    abstract executeCode(params: ExecuteCodeParams): Promise<CodeExecutionResult>;
  }
}
