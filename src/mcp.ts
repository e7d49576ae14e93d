export { type HttpOptions, type HttpServer, serveHttp } from "./mcp/http.js";
export {
  CLIENTS,
  type ClientEntry,
  type ClientName,
  clientConfig,
  type InstallOptions,
  type InstallReport,
  installClient,
  removeClient,
} from "./mcp/install.js";
export { type McpServerOptions, type SandboxOffers, TOOL_GROUPS, type ToolGroup } from "./mcp/options.js";
export type { RunOffer } from "./mcp/runs.js";
export {
  createMcpServer,
  type McpConnection,
  type McpMessage,
  type McpServer,
  type McpTransport,
} from "./mcp/server.js";
export { serveStdio } from "./mcp/stdio.js";
