import { type CallToolResult, inputRequired, type Server } from "@modelcontextprotocol/server";
import type { ToolRequests } from "../../../src/mcp/protocol.js";
import { ASKING } from "./asking-fixtures.js";
import { addPages, DOT } from "./page-fixtures.js";
import { addSessionRequests, IN_SESSIONS } from "./session-fixtures.js";

type Call = (...args: Parameters<ToolRequests["call"]>) => ReturnType<ToolRequests["call"]>;

const text = (words: string): CallToolResult => ({ content: [{ type: "text", text: words }] });
const WAVE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
const RESOURCE = {
  uri: "test://embedded-resource",
  mimeType: "text/plain",
  text: "This is an embedded resource content.",
};

/** The tools that the official tests call by their names. */
const FIXTURES: Readonly<Record<string, Call>> = {
  test_simple_text: async () => text("This is a simple text response for testing."),
  test_image_content: async () => ({ content: [{ type: "image", data: DOT, mimeType: "image/png" }] }),
  test_audio_content: async () => ({ content: [{ type: "audio", data: WAVE, mimeType: "audio/wav" }] }),
  test_embedded_resource: async () => ({ content: [{ type: "resource", resource: RESOURCE }] }),
  test_multiple_content_types: async () => ({
    content: [
      { type: "text", text: "Multiple content types test:" },
      { type: "image", data: DOT, mimeType: "image/png" },
      { type: "resource", resource: RESOURCE },
    ],
  }),
  test_error_handling: async () => ({ ...text("This tool intentionally returns an error for testing"), isError: true }),
  ...Object.fromEntries(
    Object.entries(ASKING).map(([name, ask]): [string, Call] => [name, async (_, { mcpReq }) => ask(mcpReq)]),
  ),
  ...IN_SESSIONS,
  json_schema_2020_12_tool: async () => text("its schema is listed"),
  test_streaming_elicitation: async () => text("no request of its own"),
  async test_logging_tool(_, { mcpReq }) {
    await mcpReq.log("info", "only for those who asked");
    return text("logged");
  },
  async test_tool_with_progress({ params }, { mcpReq }) {
    const progressToken = params._meta?.progressToken ?? mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
    }
    return text("done");
  },
  async test_missing_capability(_, { mcpReq }) {
    if (mcpReq.inputResponses?.["answer"] !== undefined) return text("answered");
    const messages = [{ role: "user" as const, content: { type: "text" as const, text: "Say pong" } }];
    return inputRequired({ inputRequests: { answer: inputRequired.createMessage({ messages, maxTokens: 16 }) } });
  },
};

/** A schema with the keywords that must reach clients as they are. */
const RICH_SCHEMA = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object" as const,
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

/** Adds what the official tests call by name to a server; its transport, its checks and everything else are as users have them. */
export function addFixtures(server: Server, own: ToolRequests): void {
  const listed = Object.keys(FIXTURES).map((name) => ({
    name,
    description: "Called by the official tests.",
    inputSchema: name === "json_schema_2020_12_tool" ? RICH_SCHEMA : { type: "object" as const },
  }));
  addPages(server);
  addSessionRequests(server);
  server.setRequestHandler("tools/list", () => ({ tools: [...own.list().tools, ...listed] as never }));
  server.setRequestHandler("tools/call", (request, context) =>
    (FIXTURES[request.params.name] ?? own.call)(request, context),
  );
}
