import {
  type CallToolRequest,
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  createMcpHandler,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type ListToolsResult,
  type McpServerFactory,
  ProtocolError,
  ProtocolErrorCode,
  preloadSchemas,
  Server,
  type ServerContext,
  type Transport,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { ownVersion } from "../util/own-version.js";
import type { CallContext, ListedTool, ToolCalls } from "./calls.js";
import { MAX_MESSAGE } from "./limits.js";
import { CancellableCalls } from "./protocol/cancellable-calls.js";
import { Sessions } from "./protocol/sessions.js";
import type { McpTransport } from "./transport.js";

/** What a protocol server needs to know. */
export interface ProtocolSetting {
  readonly calls: ToolCalls;
  readonly instructions: string;
  onError(error: Error): void;
}

/** The two requests that our tools answer. */
export interface ToolRequests {
  list(): { tools: ListedTool[] };
  call(request: CallToolRequest, context: ServerContext): Promise<CallToolResult | InputRequiredResult>;
}

/** Adds to a server what the official tests of the protocol need; unset for everybody else. */
export const protocolInternals: { extend?: (server: Server, own: ToolRequests) => void } = {};

const CONSENT = "consent";

/** Serves one client over a transport, in the era that it opens with. */
export function serveTransport(
  transport: McpTransport,
  owner: string,
  setting: ProtocolSetting,
): { close(): Promise<void> } {
  warmUp();
  return serveStdio(
    factoryOf(setting, () => owner),
    {
      transport: transport as Transport,
      onerror: (error) => setting.onError(error),
    },
  );
}

/** What answers HTTP requests. */
export interface HttpHandler {
  fetch(request: Request, owner: string): Promise<Response>;
  close(): Promise<void>;
}

/** Makes the handler of HTTP requests of all clients. */
export function createHttpHandler(setting: ProtocolSetting): HttpHandler {
  warmUp();
  const onerror = (error: Error): void => setting.onError(error);
  const factory = factoryOf(setting, ({ authInfo }) => authInfo?.clientId ?? "", new CancellableCalls());
  const single = createMcpHandler(factory, { onerror, maxRequestBodySize: MAX_MESSAGE });
  const sessions = new Sessions((owner) => createServer(setting, owner, undefined), onerror);
  return {
    async fetch(request, owner) {
      const answer = await sessions.fetch(request, owner);
      return answer ?? (await single.fetch(request, { authInfo: { token: "", clientId: owner, scopes: [] } }));
    },
    async close() {
      await Promise.all([sessions.close(), single.close()]);
    },
  };
}

let isWarm = false;

/** The schemas of the protocol are built while the client starts, not in its first call. */
function warmUp(): void {
  if (isWarm) return;
  isWarm = true;
  setImmediate(() => preloadSchemas());
}

function factoryOf(
  setting: ProtocolSetting,
  ownerOf: (context: Parameters<McpServerFactory>[0]) => string,
  cancellable?: CancellableCalls,
): McpServerFactory {
  return (context) => createServer(setting, ownerOf(context), cancellable);
}

/** With `cancellable`, a server answers one request only, and what cancels a call comes to another. */
function createServer(
  { calls, instructions }: ProtocolSetting,
  owner: string,
  cancellable: CancellableCalls | undefined,
): Server {
  const server = new Server(
    { name: "glovebox", title: "Glovebox", version: ownVersion() },
    { capabilities: { tools: {} }, instructions },
  );
  const own: ToolRequests = {
    list: () => ({ tools: calls.list() }),
    async call({ params: { name, arguments: given = {} } }, context) {
      if (!calls.has(name)) {
        const names = calls.list().map((tool) => tool.name);
        const message = `Unknown tool: ${name.slice(0, 100)}. There are ${names.join(", ")}.`;
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, message);
      }
      const own = contextOf(server, owner, context);
      const result = await (cancellable === undefined
        ? calls.call(name, given, own)
        : cancellable.run(owner, context.mcpReq.id, async (signal) => {
            return await calls.call(name, given, { ...own, signal: AbortSignal.any([own.signal, signal]) });
          }));
      return "question" in result ? ask(result.question) : (result as CallToolResult);
    },
  };
  server.setRequestHandler("tools/list", () => own.list() as ListToolsResult);
  server.setRequestHandler("tools/call", (request, context) => own.call(request, context));
  if (cancellable !== undefined) {
    server.setNotificationHandler("notifications/cancelled", ({ params: { requestId } }) => {
      if (requestId !== undefined) cancellable.cancel(owner, requestId);
    });
  }
  protocolInternals.extend?.(server, own);
  return server;
}

function ask(question: string): InputRequiredResult {
  const requestedSchema = { type: "object" as const, properties: {} };
  return inputRequired({ inputRequests: { [CONSENT]: inputRequired.elicit({ message: question, requestedSchema }) } });
}

function contextOf(server: Server, owner: string, { mcpReq }: ServerContext): CallContext {
  const token = mcpReq._meta?.progressToken;
  const envelope = (mcpReq.envelope as Readonly<Record<string, unknown>> | undefined)?.[CLIENT_CAPABILITIES_META_KEY];
  const { elicitation } = (envelope as ClientCapabilities | undefined) ?? server.getClientCapabilities() ?? {};
  const answer = inputResponse(mcpReq.inputResponses, CONSENT);
  return {
    owner,
    signal: mcpReq.signal,
    canAsk: elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined),
    consent: answer.kind === "elicit" ? (answer.action === "accept" ? "yes" : "no") : undefined,
    progress:
      token === undefined
        ? undefined
        : (progress, message) =>
            void mcpReq
              .notify({ method: "notifications/progress", params: { progressToken: token, progress, message } })
              .catch(() => undefined),
  };
}
