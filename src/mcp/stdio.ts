import { LineTransport } from "./line-transport.js";
import type { McpConnection, McpServer } from "./server.js";

/** Serves one client over the standard input and output of this process. Nothing else may write to its output. */
export function serveStdio(server: McpServer): McpConnection {
  return server.connect(new LineTransport(process.stdin, process.stdout));
}
