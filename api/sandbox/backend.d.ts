import { Duplex } from "node:stream";

interface Alternate {
  readonly path: string;
  readonly store: string;
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

interface DriverIdentity {
  readonly id: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
  readonly baseEnv: Readonly<Record<string, string>>;
}

type FileStream = AsyncIterable<Uint8Array> | null;

interface Frame {
  type: number;
  call: number;
  body: Buffer;
}

declare class GuestChannel {
  #private;
  readonly hello: Promise<Hello>;
  readonly acceptors: Map<string, (call: number) => CallHandler>;
  onQuery: ((body: Buffer) => void) | undefined;
  onClosed: ((error: SandboxError) => void) | undefined;
  readonly ended: Promise<SandboxError>;
  constructor(stream: ChannelStream);
  get window(): number;
  get isClosed(): boolean;
  get isIdle(): boolean;
  knows(edition: number): boolean;
  assertEdition(edition: number, what: string): void;
  open(handler: CallHandler): number;
  endCall(call: number): void;
  unref(): void;
  send(type: number, call: number, body?: readonly Uint8Array[]): boolean;
  sendUncopied(type: number, call: number, body: Uint8Array): boolean;
  drained(): Promise<void>;
  close(error?: SandboxError): void;
}

interface GuestCommand extends StartSpec {
  readonly keepCapabilities?: boolean;
}

declare abstract class GuestDriver extends GuestFileCalls implements Driver {
  #private;
  abstract readonly backend: string;
  readonly id: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
  readonly baseEnv: Readonly<Record<string, string>>;
  onWarning?: (message: string) => void;
  onLost?: () => void;
  constructor(identity: DriverIdentity, channel: GuestChannel);
  protected useChannel(channel: GuestChannel): void;
  protected frozenBy<T>(work: () => Promise<T>): Promise<T>;
  protected alone<T>(work: () => Promise<T>): Promise<T>;
  start(spec: StartSpec): Promise<DriverProcess>;
  protected startNow(spec: GuestCommand): Promise<DriverProcess>;
  protected override useFiles<T>(isChange: boolean, work: (files: GuestFiles) => Promise<T>): Promise<T>;
  protected override streamFiles(work: (files: GuestFiles) => AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
  connect(port: number, signal: AbortSignal): Promise<DriverConnection>;
  waitForPort(port: number, timeout: number, signal: AbortSignal): Promise<boolean>;
  abstract close(): Promise<void> | Promise<PendingRemoval | undefined>;
}

declare abstract class GuestFileCalls implements FileCalls {
  #private;
  protected abstract useFiles<T>(isChange: boolean, work: (files: GuestFiles) => Promise<T>): Promise<T>;
  protected abstract streamFiles(work: (files: GuestFiles) => AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
  protected useStream(work: (files: GuestFiles) => Promise<FileStream>): Promise<FileStream>;
  get anywhere(): FileCalls;
  read(path: string, { signal }?: DriverCallOptions): Promise<Uint8Array | null>;
  readStream(
    path: string,
    opts: DriverCallOptions & {
      start: number;
      length?: number;
    },
  ): Promise<FileStream>;
  write(uploads: readonly DriverFile[], { signal }?: DriverCallOptions): Promise<void>;
  writeStream({ path, source, mode }: DriverFileStream, { signal }?: DriverCallOptions): Promise<void>;
  append({ path, content, mode }: DriverFile, { signal }?: DriverCallOptions): Promise<void>;
  stat(path: string, { signal }?: DriverCallOptions): Promise<FileStat | null>;
  statTarget(path: string, { signal }?: DriverCallOptions): Promise<FileStat | null>;
  list(path: string, { signal }?: DriverCallOptions): Promise<string[]>;
  listDetails(path: string, { signal }?: DriverCallOptions): Promise<DirectoryEntry[]>;
  remove(
    path: string,
    {
      recursive,
      signal,
    }: DriverCallOptions & {
      recursive: boolean;
    },
  ): Promise<boolean>;
  removeDirectory(path: string, { signal }?: DriverCallOptions): Promise<boolean>;
  rename(from: string, to: string, { signal }?: DriverCallOptions): Promise<void>;
  copy(
    from: string,
    to: string,
    {
      recursive,
      signal,
    }: DriverCallOptions & {
      recursive: boolean;
    },
  ): Promise<void>;
  makeDirectory(path: string, { signal }?: DriverCallOptions): Promise<void>;
  importTree(tar: AsyncIterable<Uint8Array>, path: string, { signal }?: DriverCallOptions): Promise<void>;
  exportTree(path: string): AsyncIterable<Uint8Array>;
}

declare class GuestFiles {
  #private;
  constructor(channel: GuestChannel, relative: (path: string) => string);
  anywhere(): GuestFiles;
  read(path: string, signal?: AbortSignal): Promise<Uint8Array | null>;
  readUpTo(path: string, most: number, signal?: AbortSignal): Promise<Uint8Array | null | undefined>;
  readStream(
    path: string,
    opts: {
      start: number;
      length?: number;
      signal?: AbortSignal;
    },
  ): Promise<AsyncIterable<Uint8Array> | null>;
  write(path: string, content: Uint8Array, mode: number | undefined, signal?: AbortSignal): Promise<void>;
  writeStream(
    path: string,
    source: AsyncIterable<Uint8Array>,
    mode: number | undefined,
    signal?: AbortSignal,
  ): Promise<void>;
  append(path: string, content: Uint8Array, mode: number, signal?: AbortSignal): Promise<void>;
  stat(path: string): Promise<FileStat | null>;
  statTarget(path: string): Promise<FileStat | null>;
  list(path: string, signal?: AbortSignal): Promise<string[]>;
  listDetails(path: string, signal?: AbortSignal): Promise<DirectoryEntry[]>;
  remove(path: string, recursive: boolean, signal?: AbortSignal): Promise<boolean>;
  removeDirectory(path: string): Promise<boolean>;
  rename(from: string, to: string, signal?: AbortSignal): Promise<void>;
  copy(from: string, to: string, recursive: boolean, signal?: AbortSignal): Promise<void>;
  makeDirectory(path: string): Promise<void>;
  importTree(tar: AsyncIterable<Uint8Array>, path: string, signal?: AbortSignal): Promise<void>;
  exportTree(path: string): AsyncGenerator<Uint8Array>;
}

interface Hello {
  namespaced: boolean;
  complaint: string;
  edition: number;
}

interface JailBind {
  source: string;
  overlay?: string;
  target: string;
  writable?: boolean;
  owned?: boolean;
}

interface LiveTree {
  readonly id: string;
  readonly backend: string;
  readonly base?: TreeBase | undefined;
  readonly place?: string | undefined;
  readonly source: string;
  readonly ownsGit: boolean;
  readonly sandboxGit?: SandboxGit | undefined;
  readonly driver: Pick<Driver, "workDir" | "hostDir" | "baseEnv" | "start" | "importTree" | "remove">;
  readonly isLasting?: boolean;
  look(): TreeLook;
  warn(message: string): void;
  readonly signal: AbortSignal;
  readonly patience?: number | undefined;
}

interface Location {
  readonly gitDir: string;
  readonly topLevel?: string;
  readonly ownGitDir?: string;
}

interface MirrorPlan {
  readonly base: TreeBase;
  readonly resources: readonly Resource[];
}

interface MirroredDriver
  extends Readonly<LiveTree["driver"]>,
    Pick<Driver, "id" | "backend" | "onWarning" | "read" | "write" | "exportTree"> {
  frozen?<T>(work: () => Promise<T>): Promise<T>;
}

interface Repository extends Location {
  readonly objects: string;
  readonly alternates?: readonly Alternate[];
  readonly filters?: readonly string[];
  readonly objectFormat: "sha1" | "sha256";
  readonly url?: string;
}

type RunGuest = (
  args: readonly string[],
  stdin: Uint8Array,
  maxOutput: number,
) => Promise<
  | {
      exitCode: number;
      stdout: Uint8Array;
    }
  | undefined
>;

interface SandboxGit {
  headCommit?(): Promise<string | undefined>;
  lend?(sha: string, known: string): Promise<void>;
  advance?(from: string, to: string): Promise<void>;
  rebuild(head?: SandboxHead): Promise<string | undefined>;
}

interface SandboxHead {
  readonly sha: string;
  readonly branch?: string;
}

interface TreeBase {
  repository: Repository;
  sha: string;
  branch: string;
  index?: string;
  worktree?: string;
}

interface TreeLook {
  readonly root: Pick<JailBind, "source" | "overlay">;
  readonly sandboxGit?: JailBind | undefined;
  tar(): AsyncIterable<Uint8Array>;
  readonly runGuest?: RunGuest | undefined;
  frozen<T>(work: () => Promise<T>): Promise<T>;
}

interface TreeOperations extends Pick<Driver, "snapshot" | "restore" | "fork" | "changes" | "git"> {
  settled(): Promise<void>;
}

declare function createOperations(
  tree: LiveTree,
  opts: {
    fork?: (tree: LiveTree, count: number) => Promise<Driver[]>;
    token: string | undefined;
  },
): TreeOperations;

declare function fillMirror(
  { base }: Pick<MirrorPlan, "base">,
  driver: Pick<MirroredDriver, "id" | "workDir" | "importTree">,
  signal?: AbortSignal,
): Promise<string[]>;

declare function forkMirror({ base }: Pick<MirrorPlan, "base">, n: number): MirrorPlan;

declare function guestBinary(arch?: string): string;

declare function mirroredTree(base: TreeBase, driver: MirroredDriver, signal: AbortSignal): LiveTree;

declare function nameForkedBranch(fork: LiveTree): Promise<void>;

declare function planMirror(
  id: string,
  opts: Pick<SandboxOptions, "branch" | "githubToken" | "signal" | "gitFilters" | "gitAlternates"> & {
    repo: string;
  },
  startAt?: string,
): Promise<MirrorPlan>;

declare function readSnapshotRecord(id: string): Promise<SnapshotRecord>;

declare function removeGitResource(resource: Resource, beside?: readonly string[]): Promise<boolean | PendingRemoval>;

declare function removeSnapshot(record: SnapshotRecord): Promise<void>;

declare function replaceFiles(
  { driver }: Pick<LiveTree, "driver">,
  archives: readonly AsyncIterable<Uint8Array>[],
  opts: {
    keepGit: boolean;
  },
): Promise<void>;

declare function snapshotIds(): Promise<string[]>;

declare function writeSnapshotRecord(record: SnapshotRecord): Promise<void>;

export {
  type Backend,
  type Capabilities,
  type Changes,
  type ChannelStream,
  type Driver,
  type DriverConnection,
  type DriverExit,
  type DriverIdentity,
  type DriverProcess,
  type FileStat,
  type Finding,
  GuestChannel,
  GuestDriver,
  type LackingCapability,
  type MirrorPlan,
  type NetworkPolicy,
  type PendingRemoval,
  type RemoteSandboxInfo,
  type RemovalOptions,
  type Resource,
  type Sandbox,
  type SandboxEntry,
  SandboxError,
  type SandboxOptions,
  type SandboxOwner,
  type SnapshotRecord,
  type StartSpec,
  type TreeBase,
  createOperations,
  fillMirror,
  forkMirror,
  guestBinary,
  mirroredTree,
  nameForkedBranch,
  planMirror,
  readSnapshotRecord,
  removeGitResource,
  removeSnapshot,
  replaceFiles,
  snapshotIds,
  writeSnapshotRecord,
};
