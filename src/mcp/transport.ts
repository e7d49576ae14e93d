/** A message of JSON-RPC. */
export type McpMessage = object;

/** A connection to one client, in the form that the official packages for MCP use, so that their transports fit. */
export interface McpTransport {
  onmessage?: ((message: never) => void) | undefined;
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  start(): Promise<void>;
  send(message: never): Promise<void>;
  close(): Promise<void>;
}
