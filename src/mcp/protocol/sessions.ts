import { randomUUID } from "node:crypto";
import {
  isInitializeRequest,
  type JSONRPCMessage,
  type MessageExtraInfo,
  type Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { MAX_MESSAGE, MAX_SESSIONS } from "../limits.js";

const SESSION = "mcp-session-id";
/** No handshake is longer. */
const LONGEST_HANDSHAKE = 64 << 10;

interface Session {
  readonly owner: string;
  readonly server: Server;
  readonly transport: WebStandardStreamableHTTPServerTransport;
}

/**
 * The sessions of clients over HTTP that speak the protocol from before 2026. Only in a session can the server ask the client something, and tell the
 * calls of two clients with one token apart.
 */
export class Sessions {
  readonly #make: (owner: string) => Server;
  readonly #onError: (error: Error) => void;
  /** The one that was used last is the last. */
  readonly #byId = new Map<string, Session>();

  constructor(make: (owner: string) => Server, onError: (error: Error) => void) {
    this.#make = make;
    this.#onError = onError;
  }

  /** Answers a request that belongs to a session or begins one; undefined for any other. */
  async fetch(request: Request, owner: string): Promise<Response | undefined> {
    const id = request.headers.get(SESSION);
    if (id !== null) return await this.#goOn(id, request, owner);
    return (await isHandshake(request)) ? await this.#begin(request, owner) : undefined;
  }

  /** Ends all sessions. */
  async close(): Promise<void> {
    await Promise.all([...this.#byId.values()].map(({ server }) => server.close()));
  }

  async #goOn(id: string, request: Request, owner: string): Promise<Response> {
    const session = this.#byId.get(id);
    if (session === undefined || session.owner !== owner) {
      const error = { code: -32_001, message: "There is no such session; begin another with initialize" };
      return Response.json({ jsonrpc: "2.0", error, id: null }, { status: 404 });
    }
    this.#byId.delete(id);
    this.#byId.set(id, session);
    return await session.transport.handleRequest(request);
  }

  async #begin(request: Request, owner: string): Promise<Response> {
    const server = this.#make(owner);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      maxRequestBodySize: MAX_MESSAGE,
      onsessioninitialized: (id) => {
        this.#byId.set(id, { owner, server, transport });
        this.#endOldest(owner);
      },
    });
    await server.connect(transport);
    cancelWithConnection(transport);
    const onClosed = transport.onclose;
    transport.onclose = () => {
      onClosed?.();
      this.#byId.delete(transport.sessionId ?? "");
    };
    const answer = await transport.handleRequest(request);
    if (transport.sessionId === undefined) await server.close();
    return answer;
  }

  /** A client that is forgotten begins another session, as the protocol says. */
  #endOldest(owner: string): void {
    const own = [...this.#byId.values()].filter((session) => session.owner === owner);
    if (own.length > MAX_SESSIONS) void own[0]?.server.close().catch(this.#onError);
  }
}

/** A call whose connection is closed is cancelled: nobody would hear its answer. */
function cancelWithConnection(transport: WebStandardStreamableHTTPServerTransport): void {
  const take = transport.onmessage;
  transport.onmessage = (message: JSONRPCMessage, extra?: MessageExtraInfo) => {
    if ("method" in message && "id" in message) {
      const cancelled = { method: "notifications/cancelled", params: { requestId: message.id } };
      const onGone = (): void => take?.({ jsonrpc: "2.0", ...cancelled });
      extra?.request?.signal.addEventListener("abort", onGone, { once: true });
    }
    take?.(message, extra);
  };
}

/** Whether a request begins a session: the others of its era name one, and those of 2026 name their method in a header. */
async function isHandshake(request: Request): Promise<boolean> {
  if (request.method !== "POST" || request.headers.has("mcp-method")) return false;
  const reader = request.clone().body?.getReader();
  const pieces: Uint8Array[] = [];
  let length = 0;
  for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) {
    length += part.value.length;
    if (length > LONGEST_HANDSHAKE) {
      // Ends only when the request itself has been read.
      void reader?.cancel().catch(() => undefined);
      return false;
    }
    pieces.push(part.value);
  }
  try {
    return isInitializeRequest(JSON.parse(Buffer.concat(pieces).toString("utf8")));
  } catch {
    return false;
  }
}
