import { IncomingMessage } from "node:http";

import { Socket } from "node:net";

import { Duplex } from "node:stream";

declare class AgentChannel {
  #private;
  readonly hello: Promise<Hello>;
  onAccepted: ((call: number) => CallHandler) | undefined;
  onClosed: ((error: SandboxError) => void) | undefined;
  constructor(stream: ChannelStream);
  get window(): number;
  get isIdle(): boolean;
  open(handler: CallHandler): number;
  release(call: number): void;
  unref(): void;
  send(type: number, call: number, body?: readonly Uint8Array[]): boolean;
  drained(): Promise<void>;
  close(error?: SandboxError): void;
}

interface AgentCommand extends StartSpec {
  readonly keepCapabilities?: boolean;
}

declare abstract class AgentDriver implements Driver {
  #private;
  abstract readonly backend: string;
  readonly id: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
  readonly baseEnv: Readonly<Record<string, string>>;
  onWarning?: (message: string) => void;
  constructor(identity: DriverIdentity, channel: AgentChannel);
  protected useChannel(channel: AgentChannel): void;
  protected frozenBy<T>(work: () => Promise<T>): Promise<T>;
  protected alone<T>(work: () => Promise<T>): Promise<T>;
  start(spec: StartSpec): Promise<DriverProcess>;
  protected startNow(spec: AgentCommand): Promise<DriverProcess>;
  read(path: string): Promise<Uint8Array | null>;
  write(
    files: readonly {
      path: string;
      content: Uint8Array;
      mode: number;
    }[],
  ): Promise<void>;
  stat(path: string): Promise<FileStat | null>;
  list(path: string): Promise<string[]>;
  remove(
    path: string,
    opts: {
      recursive: boolean;
    },
  ): Promise<boolean>;
  rename(from: string, to: string): Promise<void>;
  makeDirectory(path: string): Promise<void>;
  importTree(tar: AsyncIterable<Uint8Array>, path: string): Promise<void>;
  exportTree(path: string): AsyncIterable<Uint8Array>;
  abstract destroy(): Promise<void>;
}

declare class AttachedStream extends Duplex {
  #private;
  constructor(socket: Socket);
  get complaint(): string;
  ref(): void;
  unref(): void;
  override _read(): void;
  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void;
  override _final(done: (error?: Error | null) => void): void;
  override _destroy(error: Error | null, done: (error: Error | null) => void): void;
}

interface BuildRequest {
  readonly tag: string;
  readonly contextPath: string;
  readonly dockerfilePath?: string;
  readonly buildArgs?: Readonly<Record<string, string>>;
  readonly parentTag?: string;
  readonly cacheKey?: string;
}

interface CallHandler {
  frame(frame: Frame): void;
  closed(error: SandboxError): void;
}

interface ChannelStream extends Duplex {
  ref(): unknown;
  unref(): unknown;
  readonly window?: number;
}

interface Committed {
  readonly image: string;
  readonly layers: number;
}

interface ContainerPlan {
  readonly name: string;
  readonly image: string;
  readonly user: string;
  readonly workDir: string;
  readonly hostname?: string;
  readonly network:
    | "none"
    | {
        readonly name: string;
        readonly aliases: readonly string[];
      };
  readonly dns?: readonly string[];
  readonly limits: Limits;
  readonly capabilities: "none" | "service";
  readonly isKept: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly mounts?: readonly Mount[];
  readonly unsafe?: NonNullable<DockerOptions["unsafe"]>;
  readonly agent?: "bind" | "volume";
}

declare class DockerDriver extends AgentDriver {
  #private;
  readonly backend = "docker";
  readonly snapshot?: (signal?: AbortSignal) => Promise<string>;
  readonly restore?: (id: string) => Promise<void>;
  readonly fork?: (count: number) => Promise<Driver[]>;
  readonly changes?: () => Promise<Changes>;
  readonly git?: NonNullable<Driver["git"]>;
  constructor(parts: DockerParts);
  get container(): RunningContainer;
  replace(make: (old: RunningContainer) => Promise<RunningContainer>): Promise<void>;
  undisturbed<T>(work: (container: RunningContainer) => Promise<T>): Promise<T>;
  frozen<T>(work: () => Promise<T>): Promise<T>;
  protected override startNow(spec: StartSpec): Promise<DriverProcess>;
  destroy(): Promise<void>;
}

type DockerOperations = Pick<Driver, "snapshot" | "restore" | "fork" | "changes" | "git">;

interface DockerParts extends DriverIdentity {
  container: RunningContainer;
  operations?(driver: DockerDriver): DockerOperations;
  release(): Promise<void>;
}

interface DriverIdentity {
  readonly id: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
  readonly baseEnv: Readonly<Record<string, string>>;
}

interface Endpoint {
  readonly name: string;
  readonly socketPath?: string;
  readonly host?: string;
  readonly port?: number;
  readonly tls?: TlsMaterial;
}

interface EndpointChoice {
  host?: string | undefined;
  context?: string | undefined;
  certPath?: string | undefined;
}

declare class Engine {
  #private;
  readonly endpoint: Endpoint;
  constructor(endpoint: Endpoint);
  close(): void;
  call<T>(method: string, path: string, call?: EngineCall): Promise<T>;
  stream(method: string, path: string, call?: EngineCall): Promise<IncomingMessage>;
  hijack(path: string, call?: EngineCall): Promise<Socket>;
}

interface EngineCall {
  query?: Readonly<Record<string, string | number | boolean | object | undefined>>;
  body?: object | AsyncIterable<Uint8Array>;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal | undefined;
  timeout?: number;
}

declare class EngineError extends SandboxError {
  readonly status: number | undefined;
  constructor(code: SandboxErrorCode, message: string, status: number | undefined, details?: SandboxErrorDetails);
}

type Env = Readonly<Record<string, string | undefined>>;

interface Frame {
  type: number;
  call: number;
  body: Buffer;
}

interface Hello {
  namespaced: boolean;
  complaint: string;
}

interface ImageConfig {
  readonly id: string;
  readonly env: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  readonly workingDir: string;
  readonly user: string;
  readonly healthcheck?: {
    readonly test: readonly string[];
    readonly timeoutMs?: number;
  };
  readonly volumes: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly layers: number;
}

interface ImageEvent {
  readonly type: "image-pull" | "image-build" | "image-ready";
  readonly image: string;
  readonly message: string;
  readonly progress?: {
    readonly current: number;
    readonly total: number;
  };
}

interface ImageOrder {
  readonly tag: string;
  readonly build?: BuildRequest;
  readonly parent?: ImageOrder;
}

declare class ImageStore {
  #private;
  constructor(engine: Engine, opts?: StoreOptions);
  ensure(order: ImageOrder, signal?: AbortSignal): Promise<ImageConfig>;
}

interface NetworkPlan {
  readonly name: string;
  readonly internal: boolean;
  readonly members: number;
  readonly labels: Readonly<Record<string, string>>;
}

interface OutputPiece {
  readonly stream: "stdout" | "stderr";
  readonly bytes: Buffer;
}

interface ProgressLine {
  readonly status?: string;
  readonly id?: string;
  readonly progressDetail?: {
    readonly current?: number;
    readonly total?: number;
  };
  readonly stream?: string;
  readonly aux?: unknown;
}

interface RunningContainer {
  readonly engine: Engine;
  readonly plan: ContainerPlan;
  readonly id: string;
  readonly channel: AgentChannel;
  stop(): Promise<void>;
  remove(): Promise<void>;
}

interface StoreOptions {
  verifyOnly?: boolean;
  onEvent?(event: ImageEvent): void;
}

interface TaskContainer {
  readonly id: string;
  readonly sandbox: Sandbox;
  start(argv: readonly string[]): Promise<DriverProcess>;
  empty(path: string): Promise<void>;
  frozen<T>(work: () => Promise<T>): Promise<T>;
  remove(): Promise<void>;
}

interface TaskContainerPlan {
  readonly name: string;
  readonly image: string;
  readonly hostname: string;
  readonly user: string;
  readonly workingDir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly limits: Limits;
  readonly labels: Readonly<Record<string, string>>;
  readonly network?: {
    readonly name: string;
    readonly internal: boolean;
  };
  readonly isService: boolean;
  onWarning(message: string): void;
}

interface TlsMaterial {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly verify: boolean;
}

declare function capabilities(): Capabilities;

declare function check(opts: SandboxOptions): void;

declare function commitContainer(
  engine: Engine,
  container: string,
  image: string,
  from: {
    layers: number;
  },
  labels: Readonly<Record<string, string>>,
): Promise<Committed>;

declare const conformance: NonNullable<BackendModule["conformance"]>;

declare function copyTree(engine: Engine, from: string, to: string, path: string): Promise<void>;

declare function createNetwork(engine: Engine, plan: NetworkPlan, signal?: AbortSignal): Promise<string>;

declare function findEndpoint(choice?: EndpointChoice, env?: Env): Endpoint;

declare function open(opts: SandboxOptions): Promise<Sandbox>;

declare function ownerLabels(): Record<string, string>;

declare function probe(): Promise<Finding[]>;

declare function readJsonLines(source: AsyncIterable<Buffer>): AsyncGenerator<unknown, void>;

declare function readOutput(source: AsyncIterable<Buffer>): AsyncGenerator<OutputPiece, void>;

declare function readProgress(source: AsyncIterable<Buffer>, what: string): AsyncGenerator<ProgressLine, void>;

declare function removeContainer(engine: Engine, name: string): Promise<void>;

declare function removeImage(
  engine: Engine,
  name: string,
  {
    force,
  }?: {
    force?: boolean;
  },
): Promise<void>;

declare function removeNetwork(engine: Engine, name: string): Promise<void>;

declare function removeResource(resource: Resource): Promise<void>;

declare function removeSnapshot({ details }: SnapshotRecord): Promise<void>;

declare function resumeContainer(engine: Engine, plan: ContainerPlan, signal?: AbortSignal): Promise<RunningContainer>;

declare function startContainer(engine: Engine, plan: ContainerPlan, signal?: AbortSignal): Promise<RunningContainer>;

declare function startTaskContainer(
  engine: Engine,
  plan: TaskContainerPlan,
  signal?: AbortSignal,
): Promise<TaskContainer>;

declare function sweepEngine(
  {
    dryRun,
  }?: {
    dryRun?: boolean;
  },
  engine?: Engine,
): Promise<string[]>;

export {
  AttachedStream,
  type ContainerPlan,
  DockerDriver,
  type Endpoint,
  type EndpointChoice,
  Engine,
  type EngineCall,
  EngineError,
  type ImageConfig,
  type ImageEvent,
  type ImageOrder,
  ImageStore,
  type OutputPiece,
  type ProgressLine,
  type RunningContainer,
  type TaskContainer,
  capabilities,
  check,
  commitContainer,
  conformance,
  copyTree,
  createDockerSandbox,
  createNetwork,
  findEndpoint,
  open,
  ownerLabels,
  probe,
  readJsonLines,
  readOutput,
  readProgress,
  removeContainer,
  removeImage,
  removeNetwork,
  removeResource,
  removeSnapshot,
  resumeContainer,
  startContainer,
  startTaskContainer,
  sweepEngine as sweep,
};
