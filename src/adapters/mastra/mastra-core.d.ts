/** What the adapter uses of `@mastra/core`, which is not installed here. `npm run test:adapters` compiles against the real one. */
declare module "@mastra/core/workspace" {
  export type ProviderStatus =
    | "pending"
    | "initializing"
    | "ready"
    | "starting"
    | "running"
    | "stopping"
    | "stopped"
    | "destroying"
    | "destroyed"
    | "error";

  export type InstructionsOption = string | ((options: InstructionsRequest) => string);
  interface InstructionsRequest {
    defaultInstructions: string;
    requestContext?: object;
  }

  export interface CommandResult {
    success: boolean;
    exitCode: number;
    stdout: string;
    stderr: string;
    executionTimeMs: number;
    timedOut?: boolean;
    killed?: boolean;
    stdoutTruncated?: boolean;
    command?: string;
  }
  export interface CommandOptions {
    timeout?: number;
    env?: NodeJS.ProcessEnv;
    cwd?: string;
    onStdout?: (data: string) => void;
    onStderr?: (data: string) => void;
    abortSignal?: AbortSignal;
    maxRetainedBytes?: number;
  }
  export interface ExecuteCommandOptions extends CommandOptions {}
  export interface SpawnProcessOptions extends CommandOptions {}
  export interface ProcessInfo {
    pid: string;
    command?: string;
    running: boolean;
    exitCode?: number;
  }

  export abstract class ProcessHandle {
    constructor(options?: Pick<SpawnProcessOptions, "maxRetainedBytes" | "onStdout" | "onStderr">);
    abstract readonly pid: string;
    abstract readonly exitCode: number | undefined;
    command?: string;
    abstract kill(): Promise<boolean>;
    abstract sendStdin(data: string): Promise<void>;
    closeStdin(): Promise<void>;
    wait(options?: object): Promise<CommandResult>;
    get stdout(): string;
    get stderr(): string;
    emitStdout(data: string): void;
    emitStderr(data: string): void;
  }
  export abstract class SandboxProcessManager<S extends MastraSandbox = MastraSandbox> {
    sandbox: S;
    protected readonly _tracked: Map<string, ProcessHandle>;
    spawn(command: string, options?: SpawnProcessOptions): Promise<ProcessHandle>;
    list(): Promise<ProcessInfo[]>;
    get(pid: string): Promise<ProcessHandle | undefined>;
    release(pid: string): void;
    kill(pid: string): Promise<boolean>;
  }

  export interface SandboxFileInput {
    path: string;
    content: string | Buffer;
  }
  export interface SandboxNetworking {
    getPortUrl(port: number): Promise<string | null>;
  }
  export interface SandboxCloneOptions {
    id?: string;
    sandboxId?: string;
    env?: Record<string, string>;
    workingDirectory?: string;
    idleTimeoutMinutes?: number;
  }
  export interface SandboxInfo {
    id: string;
    name: string;
    provider: string;
    status: ProviderStatus;
    createdAt: Date;
    lastUsedAt?: Date;
    metadata?: Record<string, unknown>;
  }
  export interface MastraSandboxOptions {
    onStart?: (args: { sandbox: MastraSandbox }) => void | Promise<void>;
    onStop?: (args: { sandbox: MastraSandbox }) => void | Promise<void>;
    onDestroy?: (args: { sandbox: MastraSandbox }) => void | Promise<void>;
    processes?: SandboxProcessManager;
  }
  export abstract class MastraSandbox {
    constructor(options: { name: string } & MastraSandboxOptions);
    abstract readonly id: string;
    abstract readonly name: string;
    abstract readonly provider: string;
    abstract status: ProviderStatus;
    protected logger: { warn(message: string, details?: object): void };
    readonly networking?: SandboxNetworking;
    readonly processes?: SandboxProcessManager;
    executeCommand?(command: string, args?: string[], options?: ExecuteCommandOptions): Promise<CommandResult>;
    writeFiles?(files: SandboxFileInput[]): Promise<void>;
    getInstructions?(options?: { requestContext?: object }): string;
    getInfo?(): SandboxInfo | Promise<SandboxInfo>;
    ensureRunning(): Promise<void>;
    start(): Promise<void>;
    stop(): Promise<void>;
    destroy(): Promise<void>;
    _start(): Promise<void>;
    _stop(): Promise<void>;
    _destroy(): Promise<void>;
  }

  export type FileContent = string | Buffer | Uint8Array;
  export interface FileStat {
    name: string;
    path: string;
    type: "file" | "directory";
    size: number;
    createdAt: Date;
    modifiedAt: Date;
  }
  export interface FileEntry {
    name: string;
    type: "file" | "directory";
    size?: number;
    isSymlink?: boolean;
  }
  export interface ReadOptions {
    encoding?: BufferEncoding;
  }
  export interface WriteOptions {
    recursive?: boolean;
    overwrite?: boolean;
    expectedMtime?: Date;
  }
  export interface ListOptions {
    recursive?: boolean;
    extension?: string | string[];
    maxDepth?: number;
  }
  export interface RemoveOptions {
    recursive?: boolean;
    force?: boolean;
  }
  export interface CopyOptions {
    overwrite?: boolean;
    recursive?: boolean;
  }
  export interface FilesystemInfo {
    id: string;
    name: string;
    provider: string;
    status?: ProviderStatus;
    error?: string;
    readOnly?: boolean;
    metadata?: Record<string, unknown>;
  }
  export interface MastraFilesystemOptions {
    onInit?: (args: { filesystem: object }) => void | Promise<void>;
    onDestroy?: (args: { filesystem: object }) => void | Promise<void>;
  }
  export abstract class MastraFilesystem {
    constructor(options: { name: string } & MastraFilesystemOptions);
    abstract readonly id: string;
    abstract readonly name: string;
    abstract readonly provider: string;
    abstract status: ProviderStatus;
    error?: string;
    init(): Promise<void>;
    destroy(): Promise<void>;
    protected ensureReady(): Promise<void>;
    abstract readFile(path: string, options?: ReadOptions): Promise<string | Buffer>;
    abstract writeFile(path: string, content: FileContent, options?: WriteOptions): Promise<void>;
    abstract appendFile(path: string, content: FileContent): Promise<void>;
    abstract deleteFile(path: string, options?: RemoveOptions): Promise<void>;
    abstract copyFile(src: string, dest: string, options?: CopyOptions): Promise<void>;
    abstract moveFile(src: string, dest: string, options?: CopyOptions): Promise<void>;
    abstract mkdir(path: string, options?: { recursive?: boolean }): Promise<void>;
    abstract rmdir(path: string, options?: RemoveOptions): Promise<void>;
    abstract readdir(path: string, options?: ListOptions): Promise<FileEntry[]>;
    abstract exists(path: string): Promise<boolean>;
    abstract stat(path: string): Promise<FileStat>;
  }

  export class SandboxNotReadyError extends Error {
    constructor(idOrStatus: string);
  }
  export class FileNotFoundError extends Error {
    constructor(path: string);
  }
  export class DirectoryNotFoundError extends Error {
    constructor(path: string);
  }
  export class FileExistsError extends Error {
    constructor(path: string);
  }
  export class IsDirectoryError extends Error {
    constructor(path: string);
  }
  export class NotDirectoryError extends Error {
    constructor(path: string);
  }
  export class DirectoryNotEmptyError extends Error {
    constructor(path: string);
  }
  export class PermissionError extends Error {
    constructor(path: string, operation: string);
  }
  export class StaleFileError extends Error {
    constructor(path: string, expectedMtime: Date, actualMtime: Date);
  }
}
