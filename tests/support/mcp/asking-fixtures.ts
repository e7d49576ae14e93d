import {
  acceptedContent,
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type InputRequiredResult,
  inputRequired,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from "@modelcontextprotocol/server";

type Asking = (context: ServerContext["mcpReq"]) => CallToolResult | InputRequiredResult;
type Requests = Parameters<typeof inputRequired>[0]["inputRequests"];

const text = (words: string): CallToolResult => ({ content: [{ type: "text", text: words }] });
const form = (message: string, field: string, type: "string" | "boolean"): NonNullable<Requests>[string] => {
  const properties = { [field]: type === "string" ? { type } : { type } };
  return inputRequired.elicit({ message, requestedSchema: { type: "object", properties, required: [field] } });
};
const sample = (words: string, maxTokens: number): NonNullable<Requests>[string] =>
  inputRequired.createMessage({ messages: [{ role: "user", content: { type: "text", text: words } }], maxTokens });
const roots: NonNullable<Requests>[string] = { method: "roots/list", params: {} };
const name = form("What is your name?", "name", "string");

/** Asks until every answer is there, and then is done. */
function once(requests: NonNullable<Requests>, done: string, requestState?: string): Asking {
  return ({ inputResponses = {}, requestState: stateOf }) => {
    const missing = Object.keys(requests).some((key) => inputResponses[key] === undefined);
    if (missing) return inputRequired({ inputRequests: requests, ...(requestState !== undefined && { requestState }) });
    const echoed: unknown = requestState === undefined ? undefined : stateOf();
    if (echoed !== requestState) throw new ProtocolError(ProtocolErrorCode.InvalidParams, "the state is not ours");
    return text(done);
  };
}

const confirm = { confirm: form("Please confirm", "ok", "boolean") };

/** The tools of the official tests that ask the client for something. */
export const ASKING: Readonly<Record<string, Asking>> = {
  test_input_required_result_elicitation({ inputResponses }) {
    const given = acceptedContent<{ name: unknown }>(inputResponses, "user_name")?.name;
    return typeof given === "string" ? text(`Hello, ${given}!`) : inputRequired({ inputRequests: { user_name: name } });
  },
  test_input_required_result_sampling: once(
    { capital_question: sample("What is the capital of France?", 100) },
    "Paris",
  ),
  test_input_required_result_list_roots: once({ client_roots: roots }, "they are known"),
  test_input_required_result_request_state: once(confirm, "state-ok", "state-1"),
  test_input_required_result_tampered_state: once(confirm, "confirmed", "state-2"),
  test_input_required_result_multiple_inputs: once(
    { user_name: name, greeting: sample("Generate a greeting", 50), client_roots: roots },
    "all are there",
    "state-3",
  ),
  test_input_required_result_multi_round({ inputResponses = {} }) {
    if (inputResponses["step2"] !== undefined) return text("both are there");
    const [step, request, requestState] =
      inputResponses["step1"] === undefined
        ? ["step1", form("Step 1: What is your name?", "name", "string"), "round-1"]
        : ["step2", form("Step 2: What is your favorite color?", "color", "string"), "round-2"];
    return inputRequired({
      inputRequests: { [step as string]: request as typeof name },
      requestState: requestState as string,
    });
  },
  test_input_required_result_capabilities({ envelope }) {
    const can = (envelope as Record<string, object> | undefined)?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
    const inputRequests = {
      ...("elicitation" in can && { user_name: name }),
      ...("sampling" in can && { greeting: sample("Generate a greeting", 50) }),
    };
    return Object.keys(inputRequests).length === 0 ? text("it can't be asked") : inputRequired({ inputRequests });
  },
};
