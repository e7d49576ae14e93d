/** How to run a command. */
export interface AiSdkCommand {
  command: string;
  workingDirectory?: string;
  env?: Record<string, string>;
  abortSignal?: AbortSignal;
}

/** Which file to use. */
export interface AiSdkFile {
  path: string;
  abortSignal?: AbortSignal;
}

/** A file and its new content. */
export interface AiSdkWrite<T> extends AiSdkFile {
  content: T;
}

/** The AI SDK's `Experimental_SandboxProcess`. */
export interface AiSdkProcess {
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  readonly stdin?: WritableStream<Uint8Array>;
  /** Rejects with the reason of the signal if the process was aborted. */
  wait(): Promise<{ exitCode: number }>;
  kill(): Promise<void>;
}

/** The AI SDK's `Experimental_SandboxSession`, by its shape: no version of the AI SDK is loaded for it. */
export interface AiSdkSession {
  readonly description: string;
  run(options: AiSdkCommand): Promise<{ exitCode: number; stdout: string; stderr: string }>;
  spawn(options: AiSdkCommand & { stdin: true }): Promise<AiSdkProcess & Required<Pick<AiSdkProcess, "stdin">>>;
  spawn(options: AiSdkCommand & { stdin?: boolean }): Promise<AiSdkProcess>;
  readFile(options: AiSdkFile): Promise<ReadableStream<Uint8Array> | null>;
  readBinaryFile(options: AiSdkFile): Promise<Uint8Array | null>;
  readTextFile(
    options: AiSdkFile & { encoding?: string; startLine?: number; endLine?: number },
  ): Promise<string | null>;
  writeFile(options: AiSdkWrite<ReadableStream<Uint8Array>>): Promise<void>;
  writeBinaryFile(options: AiSdkWrite<Uint8Array>): Promise<void>;
  writeTextFile(options: AiSdkWrite<string> & { encoding?: string }): Promise<void>;
  stat(options: AiSdkFile): Promise<{ type: "file" | "directory" | "other"; size: number } | null>;
  listDirectory(
    options: AiSdkFile,
  ): Promise<{ name: string; type: "file" | "directory" | "symlink" | "other" }[] | null>;
  deleteFile(options: AiSdkFile): Promise<boolean>;
}

/** The network policy of `@ai-sdk/harness`. */
export type AiSdkNetworkPolicy =
  | { mode: "allow-all" }
  | { mode: "deny-all" }
  | {
      mode: "custom";
      allowedHosts?: readonly string[];
      allowedCIDRs?: readonly string[];
      deniedCIDRs?: readonly string[];
    };

/** A port of a server in the sandbox. */
export interface AiSdkPort {
  port: number;
  protocol?: "http" | "https" | "ws";
}

/** The `HarnessV1NetworkSandboxSession` of `@ai-sdk/harness`. */
export interface AiSdkNetworkSession extends AiSdkSession {
  readonly id: string;
  readonly defaultWorkingDirectory: string;
  readonly ports: readonly number[];
  getPortEndpoint(options: AiSdkPort): Promise<{ url: string }>;
  getPortUrl(options: AiSdkPort): Promise<string>;
  /** Absent where the backend can't change the rules of an open sandbox. */
  setNetworkPolicy?: (policy: AiSdkNetworkPolicy) => Promise<void>;
  stop(): Promise<void>;
  destroy(): Promise<void>;
  restricted(): AiSdkSession;
}
