/** What the adapter uses of `@openai/agents-core`, which is not installed here. `npm run test:adapters` compiles against the real one. */
declare module "@openai/agents-core" {
  export class UserError extends Error {}
  export function applyDiff(input: string, diff: string, mode?: "default" | "create"): string;
  export type ApplyPatchOperation =
    | { type: "create_file"; path: string; diff: string }
    | { type: "update_file"; path: string; diff: string; moveTo?: string }
    | { type: "delete_file"; path: string };
  export interface ApplyPatchResult {
    status?: "completed" | "failed";
    output?: string;
  }
  export interface Editor {
    createFile(operation: Extract<ApplyPatchOperation, { type: "create_file" }>): Promise<ApplyPatchResult | undefined>;
    updateFile(operation: Extract<ApplyPatchOperation, { type: "update_file" }>): Promise<ApplyPatchResult | undefined>;
    deleteFile(operation: Extract<ApplyPatchOperation, { type: "delete_file" }>): Promise<ApplyPatchResult | undefined>;
  }
  export interface ToolOutputImage {
    type: "image";
    image?: unknown;
  }
}

declare module "@openai/agents-core/sandbox" {
  import type { Editor, ToolOutputImage, UserError } from "@openai/agents-core";

  interface EntryBase {
    ephemeral?: boolean;
    group?: { name: string };
    permissions?: PermissionsInit;
  }
  type PermissionsInit = string | number | { owner?: number; group?: number; other?: number };
  export interface GitRepo extends EntryBase {
    type: "git_repo";
    host?: string;
    repo: string;
    ref?: string;
    subpath?: string;
  }
  interface Mount extends EntryBase {
    type: "mount";
    source?: string;
    readOnly?: boolean;
    mountStrategy?: { type: string };
  }
  interface TypedMount extends EntryBase {
    type: "s3_mount" | "gcs_mount" | "r2_mount" | "azure_blob_mount" | "box_mount" | "s3_files_mount";
    readOnly?: boolean;
  }
  export type Entry =
    | (EntryBase & { type: "dir"; children?: Record<string, Entry> })
    | (EntryBase & { type: "file"; content: string | Uint8Array })
    | (EntryBase & { type: "local_file" | "local_dir"; src: string })
    | GitRepo
    | Mount
    | TypedMount;
  export function isMount(entry: Entry): entry is Mount | TypedMount;
  export function permissionsForSandboxEntry(permissions?: PermissionsInit): { toMode(): number };

  interface PathGrant {
    path: string;
    hostPath?: string;
    readOnly: boolean;
  }
  interface EntryPlace {
    logicalPath: string;
    absolutePath: string;
    entry: Entry;
  }
  interface MountTarget extends EntryPlace {
    entry: Mount | TypedMount;
    mountPath: string;
  }
  export class Manifest {
    constructor(init?: {
      root?: string;
      entries?: Record<string, Entry>;
      environment?: Record<string, unknown>;
      extraPathGrants?: PathGrant[];
    });
    readonly root: string;
    readonly entries: Record<string, Entry>;
    readonly users: { name: string }[];
    readonly groups: { name: string }[];
    readonly extraPathGrants: PathGrant[];
    iterEntries(): Generator<EntryPlace>;
    mountTargets(): MountTarget[];
    mountTargetsForMaterialization(): MountTarget[];
    ephemeralPersistencePaths(): Set<string>;
    resolveEnvironment(): Promise<Record<string, string>>;
  }
  export function cloneManifest(manifest: Manifest): Manifest;
  export class WorkspacePathPolicy {
    constructor(options: { root: string; extraPathGrants?: PathGrant[] });
    resolve(path?: string, options?: { forWrite?: boolean }): { path: string };
  }

  export interface Snapshot {
    id: string;
    type: string;
  }
  interface SnapshotSpec {
    type: string;
  }
  export function isNoopSnapshotSpec(spec: SnapshotSpec | null | undefined): boolean;
  export interface SandboxArchiveLimits {
    maxInputBytes?: number | null;
    maxExtractedBytes?: number | null;
    maxMembers?: number | null;
  }
  export function resolveSandboxArchiveLimits(
    limits?: SandboxArchiveLimits | null,
  ): Required<SandboxArchiveLimits> | null;
  export function validateSandboxArchiveLimits(limits?: SandboxArchiveLimits | null): void;

  export interface ExposedPortEndpoint {
    host: string;
    port: number;
    tls?: boolean;
    query?: string;
  }
  export function normalizeExposedPort(port: number): number;
  export function recordExposedPortEndpoint(
    state: SandboxSessionState,
    endpoint: ExposedPortEndpoint,
    keyPort?: number,
  ): ExposedPortEndpoint;

  export interface SandboxSessionState {
    manifest: Manifest;
    snapshot?: Snapshot | null;
    environment?: Record<string, string>;
    exposedPorts?: Record<string, ExposedPortEndpoint>;
    [key: string]: unknown;
  }
  export interface ExecCommandArgs {
    cmd: string;
    workdir?: string;
    shell?: string;
    login?: boolean;
    tty?: boolean;
    yieldTimeMs?: number;
    maxOutputTokens?: number;
    runAs?: string;
  }
  export interface SandboxExecResult {
    output: string;
    stdout: string;
    stderr: string;
    wallTimeSeconds: number;
    exitCode?: number | null;
    sessionId?: number;
    originalTokenCount?: number;
  }
  export interface WriteStdinArgs {
    sessionId: number;
    chars?: string;
    yieldTimeMs?: number;
    maxOutputTokens?: number;
  }
  export interface ViewImageArgs {
    path: string;
    runAs?: string;
  }
  export interface ReadFileArgs extends ViewImageArgs {
    maxBytes?: number;
  }
  export interface ListDirectoryArgs extends ViewImageArgs {}
  export interface SandboxDirectoryEntry {
    name: string;
    path: string;
    type: "file" | "dir" | "other";
  }
  export interface MaterializeEntryArgs extends ViewImageArgs {
    entry: Entry;
  }
  export type WorkspaceArchiveData = string | ArrayBuffer | Uint8Array;
  export interface WorkspaceArchiveOptions {
    archiveLimits?: SandboxArchiveLimits | null;
  }
  export interface SandboxSession<S extends SandboxSessionState = SandboxSessionState> {
    state: S;
    createEditor?(runAs?: string): Editor;
    execCommand?(args: ExecCommandArgs): Promise<string>;
    viewImage?(args: ViewImageArgs): Promise<ToolOutputImage>;
  }

  export type SandboxClientOptions = Record<string, unknown>;
  export interface SandboxClientCreateArgs<O extends SandboxClientOptions = SandboxClientOptions> {
    snapshot?: SnapshotSpec;
    manifest?: Manifest;
    options?: O;
    archiveLimits?: SandboxArchiveLimits | null;
    concurrencyLimits?: { manifestEntries?: number; localDirFiles?: number };
  }
  export interface SandboxClientResumeOptions<O extends SandboxClientOptions = SandboxClientOptions> {
    archiveLimits?: SandboxArchiveLimits | null;
    clientOptions?: O;
  }
  export interface SandboxSessionSerializationOptions {
    preserveOwnedSession?: boolean;
    reuseLiveSession?: boolean;
    willCloseAfterSerialize?: boolean;
  }
  export interface SandboxClient<
    O extends SandboxClientOptions = SandboxClientOptions,
    S extends SandboxSessionState = SandboxSessionState,
  > {
    backendId: string;
    create?(args?: SandboxClientCreateArgs<O>): Promise<SandboxSession<S>>;
    resume?(state: S, options?: SandboxClientResumeOptions<O>): Promise<SandboxSession<S>>;
  }
  export function normalizeSandboxClientCreateArgs<O extends SandboxClientOptions>(
    args?: SandboxClientCreateArgs<O> | Manifest,
    options?: O,
  ): SandboxClientCreateArgs<O> & { manifest: Manifest };

  class CodedError extends UserError {
    constructor(message: string, details?: Record<string, unknown>);
  }
  export class SandboxUnsupportedFeatureError extends CodedError {}
  export class SandboxPathResolutionError extends CodedError {}
  export class SandboxWorkspaceReadNotFoundError extends CodedError {}
  export class SandboxConfigurationError extends CodedError {}
  export class SandboxProviderError extends CodedError {}
  export class SandboxArchiveError extends CodedError {}
  export class SandboxMountError extends CodedError {}
  export class SandboxApplyPatchDecodeError extends CodedError {}
  export class SandboxApplyPatchFileNotFoundError extends CodedError {}
  export class SandboxLocalDirReadError extends CodedError {}
  export class SandboxLocalFileReadError extends CodedError {}
  export class SandboxGitMissingInImageError extends CodedError {}
  export class SandboxGitSubpathError extends CodedError {}
  export class SandboxGitCloneError extends CodedError {}
  export class SandboxSnapshotNotRestorableError extends CodedError {}
}

declare module "@openai/agents-core/sandbox/internal" {
  import type { ToolOutputImage } from "@openai/agents-core";
  import type { Entry, Manifest, SandboxSessionState } from "@openai/agents-core/sandbox";

  export function formatExecResponse(result: {
    output: string;
    wallTimeSeconds: number;
    sessionId?: number;
    exitCode?: number | null;
  }): string;
  export function truncateOutput(output: string, maxTokens?: number): { text: string; originalTokenCount?: number };
  export function elapsedSeconds(start: number): number;
  export function assertViewImageByteLength(path: string, byteLength: number): void;
  export function imageOutputFromBytes(path: string, bytes: Uint8Array): ToolOutputImage;
  export function sandboxPathGrantHostPath(grant: { path: string; hostPath?: string }): string;
  export function isUnderPosixPath(path: string, root: string): boolean;
  export function validateMountCredentialBoundaries(manifest: Manifest): void;
  export function isHostPathWithinRoot(root: string, path: string): boolean;
  export function mergeManifestEntryDelta(base: Manifest, path: string, entry: Entry): Manifest;
  export function mergeManifestDelta(base: Manifest, update: Manifest): Manifest;
  export function serializeManifest(manifest: Manifest): Manifest;
  export function deserializeManifest(value: Record<string, unknown> | undefined): Manifest;
  export function serializeMountCredentialRedactionMetadata(state: SandboxSessionState): Record<string, unknown>;
  export function deserializeMountCredentialRedactionMetadata(state: Record<string, unknown>): Record<string, unknown>;
  export function serializeHostPathGrantRedactionMetadata(state: SandboxSessionState): Record<string, unknown>;
  export function deserializeHostPathGrantRedactionMetadata(state: Record<string, unknown>): Record<string, unknown>;
  export function sanitizeEnvironmentForPersistence(state: SandboxSessionState): Record<string, string>;
  export function rehydratePersistedEnvironmentForRuntime(
    manifest: Manifest,
    environment: Record<string, string> | undefined,
  ): Promise<Record<string, string>>;
  export function readOptionalRecord(value: unknown): Record<string, unknown> | undefined;
  export function readOptionalNumberArray(value: unknown): number[] | undefined;
  export function readString(record: Record<string, unknown>, key: string): string;
  export function isStringRecord(value: unknown): value is Record<string, string>;
  export function assertMountCredentialsRebound(state: SandboxSessionState): void;
  export function assertHostPathGrantsRebound(state: SandboxSessionState): void;
  export function assertSandboxSessionStateUsable(state: SandboxSessionState): void;
  export function withExclusiveSandboxManifestMutation<T>(
    state: SandboxSessionState,
    work: () => Promise<T>,
  ): Promise<T>;
}
