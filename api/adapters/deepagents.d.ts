import { BaseSandbox, ExecuteResponse, FileDownloadResponse, FileUploadResponse } from "deepagents";

declare const BaseSandbox$1: typeof BaseSandbox;

declare class GloveboxSandbox extends BaseSandbox$1 {
  #private;
  constructor(options?: GloveboxSandboxOptions);
  static create(options?: GloveboxSandboxOptions): Promise<GloveboxSandbox>;
  get id(): string;
  get isRunning(): boolean;
  get sandbox(): Sandbox;
  initialize(): Promise<void>;
  close(): Promise<void>;
  override execute(command: string): Promise<ExecuteResponse>;
  override uploadFiles(files: [string, Uint8Array][]): Promise<FileUploadResponse[]>;
  override downloadFiles(paths: string[]): Promise<FileDownloadResponse[]>;
}

interface GloveboxSandboxOptions extends OpenOptions {
  sandbox?: Sandbox;
  timeout?: number;
  initialFiles?: Readonly<Record<string, string>>;
}

export { GloveboxSandbox, GloveboxSandboxOptions };
