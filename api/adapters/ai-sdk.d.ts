interface AiSdkCommand {
  command: string;
  workingDirectory?: string;
  env?: Record<string, string>;
  abortSignal?: AbortSignal;
}

interface AiSdkFile {
  path: string;
  abortSignal?: AbortSignal;
}

type AiSdkNetworkPolicy =
  | {
      mode: "allow-all";
    }
  | {
      mode: "deny-all";
    }
  | {
      mode: "custom";
      allowedHosts?: readonly string[];
      allowedCIDRs?: readonly string[];
      deniedCIDRs?: readonly string[];
    };

interface AiSdkNetworkSession extends AiSdkSession {
  readonly id: string;
  readonly defaultWorkingDirectory: string;
  readonly ports: readonly number[];
  getPortEndpoint(options: AiSdkPort): Promise<{
    url: string;
  }>;
  getPortUrl(options: AiSdkPort): Promise<string>;
  setNetworkPolicy?: (policy: AiSdkNetworkPolicy) => Promise<void>;
  stop(): Promise<void>;
  destroy(): Promise<void>;
  restricted(): AiSdkSession;
}

interface AiSdkPort {
  port: number;
  protocol?: "http" | "https" | "ws";
}

interface AiSdkProcess {
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  readonly stdin?: WritableStream<Uint8Array>;
  wait(): Promise<{
    exitCode: number;
  }>;
  kill(): Promise<void>;
}

interface AiSdkSession {
  readonly description: string;
  run(options: AiSdkCommand): Promise<{
    exitCode: number;
    stdout: string;
    stderr: string;
  }>;
  spawn(
    options: AiSdkCommand & {
      stdin: true;
    },
  ): Promise<AiSdkProcess & Required<Pick<AiSdkProcess, "stdin">>>;
  spawn(
    options: AiSdkCommand & {
      stdin?: boolean;
    },
  ): Promise<AiSdkProcess>;
  readFile(options: AiSdkFile): Promise<ReadableStream<Uint8Array> | null>;
  readBinaryFile(options: AiSdkFile): Promise<Uint8Array | null>;
  readTextFile(
    options: AiSdkFile & {
      encoding?: string;
      startLine?: number;
      endLine?: number;
    },
  ): Promise<string | null>;
  writeFile(options: AiSdkWrite<ReadableStream<Uint8Array>>): Promise<void>;
  writeBinaryFile(options: AiSdkWrite<Uint8Array>): Promise<void>;
  writeTextFile(
    options: AiSdkWrite<string> & {
      encoding?: string;
    },
  ): Promise<void>;
  stat(options: AiSdkFile): Promise<{
    type: "file" | "directory" | "other";
    size: number;
  } | null>;
  listDirectory(options: AiSdkFile): Promise<
    | {
        name: string;
        type: "file" | "directory" | "symlink" | "other";
      }[]
    | null
  >;
  deleteFile(options: AiSdkFile): Promise<boolean>;
}

interface AiSdkSessionOptions {
  timeout?: number;
}

interface AiSdkTool<I> {
  readonly description: string;
  readonly inputSchema: StandardSchema<I>;
  readonly execute: (
    input: I,
    options: {
      abortSignal?: AbortSignal | undefined;
    },
  ) => Promise<string>;
}

type AiSdkTools = {
  readonly bash: AiSdkTool<BashInput>;
  readonly read: AiSdkTool<ReadInput>;
  readonly write: AiSdkTool<WriteInput>;
  readonly edit: AiSdkTool<EditInput>;
};

interface AiSdkWrite<T> extends AiSdkFile {
  content: T;
}

interface BashInput {
  command: string;
  timeout_ms?: number;
}

interface EditInput {
  path: string;
  old: string;
  new: string;
  all?: boolean;
}

interface HarnessProvider {
  readonly specificationVersion: "harness-sandbox-v1";
  readonly providerId: string;
  createSession(options?: SessionRequest): Promise<AiSdkNetworkSession>;
  resumeSession(options: { sessionId: string; abortSignal?: AbortSignal }): Promise<AiSdkNetworkSession>;
}

type ProviderOptions =
  | Omit<OpenOptions, "id" | "name" | "ifExists" | "snapshot" | "signal">
  | {
      sandbox: Sandbox;
    };

interface ReadInput {
  path: string;
  start_line?: number;
  max_lines?: number;
}

interface SessionRequest {
  sessionId?: string;
  identity?: string;
  onFirstCreate?: (
    session: AiSdkSession,
    options: {
      abortSignal?: AbortSignal;
    },
  ) => Promise<void>;
  abortSignal?: AbortSignal;
}

interface StandardSchema<I> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) =>
      | {
          value: I;
        }
      | {
          issues: {
            message: string;
            path: (string | number)[];
          }[];
        };
    readonly jsonSchema: {
      readonly input: (options: { target: string }) => Record<string, unknown>;
      readonly output: (options: { target: string }) => Record<string, unknown>;
    };
    readonly types?: {
      readonly input: I;
      readonly output: I;
    };
  };
}

interface ToolOptions {
  timeout?: number;
  maxOutput?: number;
}

interface WriteInput {
  path: string;
  content: string;
}

declare function createSandboxProvider(options?: ProviderOptions): HarnessProvider;

declare function createSandboxSession(sandbox: Sandbox, options?: AiSdkSessionOptions): AiSdkSession;

declare function createSandboxTools(sandbox: Sandbox, options?: ToolOptions): AiSdkTools;

export {
  type AiSdkNetworkPolicy,
  type AiSdkNetworkSession,
  type AiSdkProcess,
  type AiSdkSession,
  type AiSdkSessionOptions,
  type AiSdkTool,
  type AiSdkTools,
  type HarnessProvider,
  type ProviderOptions,
  createSandboxProvider,
  createSandboxSession,
  createSandboxTools,
};
