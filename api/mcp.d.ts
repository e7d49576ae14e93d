declare const CLIENTS: readonly ["claude-code", "codex", "cursor", "vscode", "gemini", "opencode"];

interface ClientEntry {
  readonly command: string;
  readonly args: readonly string[];
}

type ClientName = (typeof CLIENTS)[number];

interface HttpOptions {
  port?: number;
  host?: string;
  tokens: readonly string[];
  allowHosts?: readonly string[];
  allowOrigins?: readonly string[];
  rate?: number;
}

interface HttpServer extends AsyncDisposable {
  readonly url: string;
  close(): Promise<void>;
}

interface InstallOptions {
  readonly client: ClientName;
  readonly scope?: InstallScope;
  readonly name?: string;
  readonly home?: string;
  readonly project?: string;
}

interface InstallReport {
  readonly client: ClientName;
  readonly file: string;
  readonly changed: boolean;
}

type InstallScope = "user" | "project";

interface McpConnection {
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

type McpMessage = object;

interface McpServer extends AsyncDisposable {
  connect(transport: McpTransport): McpConnection;
  fetch(request: Request, owner: string): Promise<Response>;
  close(): Promise<void>;
}

interface McpServerOptions {
  sandbox?: OpenOptions;
  open?(options: OpenOptions): Promise<Sandbox>;
  tools?: readonly ToolGroup[];
  multi?: boolean;
  offers?: SandboxOffers;
  structured?: boolean;
  ansi?: boolean;
  maxOutput?: number;
  maxCalls?: number;
  maxSandboxes?: number;
  push?: {
    readonly token: string;
    readonly server?: string;
  };
  onError?(error: Error): void;
}

interface McpTransport {
  onmessage?: ((message: never) => void) | undefined;
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  start(): Promise<void>;
  send(message: never): Promise<void>;
  close(): Promise<void>;
}

interface SandboxOffers {
  readonly backends?: readonly string[];
  readonly images?: readonly string[];
  readonly repos?: readonly string[];
}

declare const TOOL_GROUPS: readonly ["browse", "git", "snapshot", "ports"];

type ToolGroup = (typeof TOOL_GROUPS)[number];

declare function createMcpServer(options?: McpServerOptions): Promise<McpServer>;

declare function installClient(options: InstallOptions, entry: ClientEntry): Promise<InstallReport>;

declare function removeClient(options: InstallOptions): Promise<InstallReport>;

declare function serveHttp(mcp: McpServer, options: HttpOptions): Promise<HttpServer>;

declare function serveStdio(server: McpServer): McpConnection;

export {
  CLIENTS,
  type ClientEntry,
  type ClientName,
  type HttpOptions,
  type HttpServer,
  type InstallOptions,
  type InstallReport,
  type McpConnection,
  type McpMessage,
  type McpServer,
  type McpServerOptions,
  type McpTransport,
  type SandboxOffers,
  TOOL_GROUPS,
  type ToolGroup,
  createMcpServer,
  installClient,
  removeClient,
  serveHttp,
  serveStdio,
};
