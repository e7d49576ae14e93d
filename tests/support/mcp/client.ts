import { type CallToolResult, Client, type ClientOptions, type Transport } from "@modelcontextprotocol/client";
import type { McpServer, McpTransport } from "../../../src/mcp.js";

/** The two eras of the protocol, as a client asks for them. */
export const ERAS: readonly (readonly [name: string, options: Partial<ClientOptions>])[] = [
  ["2025", { versionNegotiation: { mode: "legacy" } }],
  ["2026", { versionNegotiation: { mode: { pin: "2026-07-28" } } }],
];

/** A client, with what it gets for a call. */
export interface TestClient extends AsyncDisposable {
  readonly client: Client;
  /** The result of a call. */
  call(
    name: string,
    args?: Record<string, unknown>,
    options?: Parameters<Client["callTool"]>[1],
  ): Promise<CallToolResult>;
  /** The text of a result that is no error. */
  text(name: string, args?: Record<string, unknown>): Promise<string>;
  /** The text of a result that is an error. */
  failure(name: string, args?: Record<string, unknown>): Promise<string>;
}

/** Connects the official client by a transport. */
export async function connectBy(transport: Transport, options: Partial<ClientOptions> = {}): Promise<TestClient> {
  const client = new Client({ name: "test", version: "1.0.0" }, options as ClientOptions);
  await client.connect(transport);
  const call: TestClient["call"] = async (name, args = {}, more) =>
    (await client.callTool({ name, arguments: args }, more)) as CallToolResult;
  return {
    client,
    call,
    async text(name, args) {
      const result = await call(name, args);
      if (result.isError === true) throw new Error(`${name} failed: ${textOf(result)}`);
      return textOf(result);
    },
    async failure(name, args) {
      const result = await call(name, args);
      if (result.isError !== true) throw new Error(`${name} did not fail: ${textOf(result)}`);
      return textOf(result);
    },
    async [Symbol.asyncDispose]() {
      await client.close();
    },
  };
}

/** Connects the official client to a server in this process. */
export async function connectTo(server: McpServer, options: Partial<ClientOptions> = {}): Promise<TestClient> {
  const [ours, theirs] = linkedTransports();
  server.connect(ours);
  return await connectBy(theirs as Transport, options);
}

/** All text of a result. */
export function textOf({ content }: CallToolResult): string {
  return content.map((part) => (part.type === "text" ? part.text : `<${part.type}>`)).join("\n");
}

/** The fields of a result for programs. */
export function fieldsOf({ _meta }: CallToolResult): Record<string, unknown> {
  return (_meta?.["glovebox/result"] ?? {}) as Record<string, unknown>;
}

function linkedTransports(): [McpTransport, McpTransport] {
  const ends: McpTransport[] = [];
  const make = (other: number): McpTransport => ({
    start: async () => undefined,
    async send(message) {
      const text = JSON.stringify(message);
      setImmediate(() => ends[other]?.onmessage?.(JSON.parse(text) as never));
    },
    async close() {
      for (const end of ends.splice(0)) end.onclose?.();
    },
  });
  const [first, second] = [make(1), make(0)];
  ends.push(first, second);
  return [first, second];
}
