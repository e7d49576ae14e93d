import { Editor, ToolOutputImage } from "@openai/agents-core";

import {
  ExecCommandArgs,
  ExposedPortEndpoint,
  ListDirectoryArgs,
  Manifest,
  MaterializeEntryArgs,
  ReadFileArgs,
  SandboxArchiveLimits,
  SandboxClient,
  SandboxClientCreateArgs,
  SandboxClientOptions,
  SandboxClientResumeOptions,
  SandboxDirectoryEntry,
  SandboxExecResult,
  SandboxSession,
  SandboxSessionSerializationOptions,
  SandboxSessionState,
  ViewImageArgs,
  WorkspaceArchiveData,
  WorkspaceArchiveOptions,
  WriteStdinArgs,
} from "@openai/agents-core/sandbox";

declare class GloveboxSandboxClient
  implements SandboxClient<GloveboxSandboxClientOptions, GloveboxSandboxSessionState>
{
  #private;
  readonly backendId = "glovebox";
  constructor(options?: GloveboxSandboxClientOptions);
  create(
    args?: SandboxClientCreateArgs<GloveboxSandboxClientOptions> | Manifest,
    manifestOptions?: GloveboxSandboxClientOptions,
  ): Promise<GloveboxSandboxSession>;
  resume(
    state: GloveboxSandboxSessionState,
    { archiveLimits, clientOptions }?: SandboxClientResumeOptions<GloveboxSandboxClientOptions>,
  ): Promise<GloveboxSandboxSession>;
  delete(state: GloveboxSandboxSessionState): Promise<void>;
  serializeSessionState(
    state: GloveboxSandboxSessionState,
    options?: SandboxSessionSerializationOptions,
  ): Promise<Record<string, unknown>>;
  deserializeSessionState(state: Record<string, unknown>): Promise<GloveboxSandboxSessionState>;
  canPersistOwnedSessionState(state: GloveboxSandboxSessionState): boolean;
}

interface GloveboxSandboxClientOptions extends SandboxClientOptions, Omit<OpenOptions, "id" | "snapshot" | "workDir"> {
  exposedPorts?: number[];
  persistence?: "snapshot" | "none";
}

declare class GloveboxSandboxSession implements SandboxSession<GloveboxSandboxSessionState> {
  #private;
  readonly state: GloveboxSandboxSessionState;
  readonly sandbox: Sandbox;
  constructor(sandbox: Sandbox, state: GloveboxSandboxSessionState, onClose?: () => void);
  supportsPty(): boolean;
  exec(args: ExecCommandArgs): Promise<SandboxExecResult>;
  execCommand(args: ExecCommandArgs): Promise<string>;
  writeStdin(args: WriteStdinArgs): Promise<string>;
  createEditor(runAs?: string): Editor;
  viewImage({ path, runAs }: ViewImageArgs): Promise<ToolOutputImage>;
  readFile({ path, maxBytes, runAs }: ReadFileArgs): Promise<Uint8Array>;
  listDir({ path, runAs }: ListDirectoryArgs): Promise<SandboxDirectoryEntry[]>;
  pathExists(path: string, runAs?: string): Promise<boolean>;
  directoryExists(path: string, runAs?: string): Promise<boolean>;
  materializeEntry({ path, entry, runAs }: MaterializeEntryArgs): Promise<void>;
  applyManifest(manifest: Manifest, runAs?: string): Promise<void>;
  persistWorkspace(): Promise<Uint8Array>;
  hydrateWorkspace(data: WorkspaceArchiveData, options?: WorkspaceArchiveOptions): Promise<void>;
  setArchiveLimits(limits?: SandboxArchiveLimits | null): void;
  resolveExposedPort(port: number): Promise<ExposedPortEndpoint>;
  running(): Promise<boolean>;
  stop(): Promise<void>;
  shutdown(): Promise<void>;
  delete(): Promise<void>;
  close(): Promise<void>;
}

interface GloveboxSandboxSessionState extends SandboxSessionState {
  sandboxId: string;
  configuredExposedPorts: number[];
  environment: Record<string, string>;
}

export {
  GloveboxSandboxClient,
  type GloveboxSandboxClientOptions,
  GloveboxSandboxSession,
  type GloveboxSandboxSessionState,
};
