import { asRecord, asText, parseLine, type Untrusted } from "../json-line.js";

/** The codes of JSON-RPC and of the protocol that are used here. */
export const RPC_CODES = {
  unknownMethod: -32601,
  invalidParams: -32602,
  internal: -32603,
  invalidRequest: -32600,
  unsupportedVersion: -32022,
  authRequired: -32000,
  notFound: -32002,
} as const;

/** An error that the other side is sent. */
export class RpcError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** The id of a request: ours are numbers, the agent's what it likes. */
export type RpcId = string | number;

/** A line of the protocol. */
export type RpcMessage =
  | { readonly type: "request"; readonly id: RpcId; readonly method: string; readonly params: Untrusted }
  | { readonly type: "notification"; readonly method: string; readonly params: Untrusted }
  | { readonly type: "response"; readonly id: RpcId; readonly result?: Untrusted; readonly error?: Untrusted };

const LONGEST_ID = 200;
const LONGEST_METHOD = 100;

/** Reads a line as JSON-RPC 2.0; undefined when it isn't, for example a line that was printed beside the protocol. */
export function readMessage(line: string): RpcMessage | undefined {
  const message = parseLine(line);
  if (message === undefined || message["jsonrpc"] !== "2.0") return undefined;
  const id = readId(message["id"]);
  const method = asText(message["method"]);
  if (method !== undefined) {
    if (method.length > LONGEST_METHOD) return undefined;
    const params = asRecord(message["params"]) ?? {};
    if (!("id" in message)) return { type: "notification", method, params };
    return id === undefined ? undefined : { type: "request", id, method, params };
  }
  if (id === undefined) return undefined;
  const error = asRecord(message["error"]);
  return error === undefined
    ? { type: "response", id, result: asRecord(message["result"]) ?? {} }
    : { type: "response", id, error };
}

function readId(id: unknown): RpcId | undefined {
  if (typeof id === "number") return Number.isSafeInteger(id) ? id : undefined;
  return typeof id === "string" && id.length <= LONGEST_ID ? id : undefined;
}

/** Writes a request. */
export function requestLine(id: number, method: string, params: object): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params });
}

/** Writes a notification. */
export function notificationLine(method: string, params: object): string {
  return JSON.stringify({ jsonrpc: "2.0", method, params });
}

/** Writes the answer to a request. */
export function resultLine(id: RpcId, result: object): string {
  return JSON.stringify({ jsonrpc: "2.0", id, result });
}

/** Writes the refusal of a request. */
export function errorLine(id: RpcId, { code, message }: { code: number; message: string }): string {
  return JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } });
}
