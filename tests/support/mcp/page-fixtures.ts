import {
  type GetPromptResult,
  inputRequired,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  type Server,
} from "@modelcontextprotocol/server";

export const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

type Message = GetPromptResult["messages"][number];
const says = (text: string): Message => ({ role: "user", content: { type: "text", text } });
const words = (name: string): { name: string; required: true } => ({ name, required: true });

const PROMPTS: Readonly<
  Record<string, { takes: readonly string[]; messages(given: Record<string, string>): Message[] }>
> = {
  test_simple_prompt: { takes: [], messages: () => [says("This is a simple prompt for testing.")] },
  test_prompt_with_arguments: {
    takes: ["arg1", "arg2"],
    messages: ({ arg1, arg2 }) => [says(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  },
  test_prompt_with_embedded_resource: {
    takes: ["resourceUri"],
    messages: ({ resourceUri = "" }) => [
      {
        role: "user",
        content: {
          type: "resource",
          resource: { uri: resourceUri, mimeType: "text/plain", text: "Embedded resource content for testing." },
        },
      },
      says("Please process the embedded resource above."),
    ],
  },
  test_prompt_with_image: {
    takes: [],
    messages: () => [
      { role: "user", content: { type: "image", data: DOT, mimeType: "image/png" } },
      says("Please analyze the image above."),
    ],
  },
};

const RESOURCES: Readonly<Record<string, Record<string, string>>> = {
  "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: DOT },
};

function read(uri: string): ReadResourceResult {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  const text = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
  const found = id === undefined ? RESOURCES[uri] : { mimeType: "application/json", text };
  if (found === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no ${uri}`, { uri });
  return { contents: [{ uri, ...found } as ReadResourceResult["contents"][number]] };
}

/** Adds what the official tests ask for beside tools: prompts, resources and completion. */
export function addPages(server: Server): void {
  server.registerCapabilities({ prompts: {}, resources: {}, completions: {} });
  const prompts = Object.entries(PROMPTS).map(([name, { takes }]) => ({
    name,
    description: "Asked for by the official tests.",
    arguments: takes.map(words),
  }));
  server.setRequestHandler("prompts/list", () => ({ prompts }));
  server.setRequestHandler("prompts/get", ({ params: { name, arguments: given = {} } }, { mcpReq }) => {
    if (name === "test_input_required_result_prompt") {
      if (mcpReq.inputResponses?.["user_context"] !== undefined) return { messages: [says("with the context")] };
      const requestedSchema = { type: "object" as const, properties: { context: { type: "string" as const } } };
      const message = "What context should the prompt use?";
      return inputRequired({ inputRequests: { user_context: inputRequired.elicit({ message, requestedSchema }) } });
    }
    const found = PROMPTS[name];
    if (found === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no prompt ${name}`);
    return { messages: found.messages(given) };
  });
  const resources = Object.entries(RESOURCES).map(([uri, { mimeType }]) => ({
    ...{ uri, name: uri, description: "Asked for by the official tests." },
    ...(mimeType !== undefined && { mimeType }),
  }));
  server.setRequestHandler("resources/list", () => ({ resources }));
  server.setRequestHandler("resources/templates/list", () => ({
    resourceTemplates: [{ uriTemplate: "test://template/{id}/data", name: "a template" }],
  }));
  server.setRequestHandler("resources/read", ({ params: { uri } }) => read(uri));
  server.setRequestHandler("completion/complete", () => ({ completion: { values: [], total: 0, hasMore: false } }));
}
