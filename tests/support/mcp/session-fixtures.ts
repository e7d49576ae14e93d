import { acceptedContent, type CallToolResult, inputRequired, type Server } from "@modelcontextprotocol/server";
import type { ToolRequests } from "../../../src/mcp/protocol.js";

type Call = (...args: Parameters<ToolRequests["call"]>) => ReturnType<ToolRequests["call"]>;
type Form = Parameters<typeof inputRequired.elicit>[0]["requestedSchema"];

const text = (words: string): CallToolResult => ({ content: [{ type: "text", text: words }] });
const choices = (values: readonly string[]): { const: string; title: string }[] =>
  values.map((value, at) => ({ const: value, title: `Choice ${at + 1}` }));

/** Every kind of field with a default. */
const DEFAULTS: Form = {
  type: "object",
  properties: {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  },
};

const VALUES = ["value1", "value2", "value3"];
const OPTIONS = ["option1", "option2", "option3"];
/** Every kind of choice. */
const CHOICES: Form = {
  type: "object",
  properties: {
    untitledSingle: { type: "string", enum: OPTIONS },
    titledSingle: { type: "string", oneOf: choices(VALUES) },
    legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["One", "Two", "Three"] },
    untitledMulti: { type: "array", items: { type: "string", enum: OPTIONS } },
    titledMulti: { type: "array", items: { anyOf: choices(VALUES) } },
  },
};

const PERSON: Form = {
  type: "object",
  properties: { username: { type: "string" }, email: { type: "string" } },
  required: ["username", "email"],
};

function asks(requestedSchema: Form): Call {
  return async ({ params: { arguments: given = {} } }, { mcpReq: { inputResponses } }) => {
    const message = String(given["message"] ?? "Please choose");
    if (inputResponses?.["answer"] === undefined) {
      return inputRequired({ inputRequests: { answer: inputRequired.elicit({ message, requestedSchema }) } });
    }
    return text(`Elicitation completed: content=${JSON.stringify(acceptedContent(inputResponses, "answer"))}`);
  };
}

/** The tools of the official tests that need a session in the era before 2026. */
export const IN_SESSIONS: Readonly<Record<string, Call>> = {
  test_elicitation: asks(PERSON),
  test_elicitation_sep1034_defaults: asks(DEFAULTS),
  test_elicitation_sep1330_enums: asks(CHOICES),
  async test_sampling({ params: { arguments: given = {} } }, { mcpReq: { inputResponses } }) {
    if (inputResponses?.["answer"] !== undefined) return text("LLM response: it is there");
    const messages = [{ role: "user" as const, content: { type: "text" as const, text: String(given["prompt"]) } }];
    return inputRequired({ inputRequests: { answer: inputRequired.createMessage({ messages, maxTokens: 100 }) } });
  },
  async test_tool_with_logging(_, { mcpReq }) {
    for (const what of ["started", "processing data", "completed"]) await mcpReq.log("info", `Tool execution ${what}`);
    return text("logged");
  },
};

/** Adds what is set for a whole session: the level of the log, and subscriptions. */
export function addSessionRequests(server: Server): void {
  server.registerCapabilities({ logging: {}, resources: { subscribe: true } });
  const subscribed = new Set<string>();
  server.setRequestHandler("resources/subscribe", ({ params: { uri } }) => {
    subscribed.add(uri);
    return {};
  });
  server.setRequestHandler("resources/unsubscribe", ({ params: { uri } }) => {
    subscribed.delete(uri);
    return {};
  });
}
