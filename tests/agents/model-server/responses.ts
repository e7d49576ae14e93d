import { randomUUID } from "node:crypto";
import { openAiError } from "./openai-errors.js";
import { need, needList, type Protocol, type StreamEvent, textsIn } from "./protocol.js";
import { piecesOf, type Turn, usageOf } from "./turn.js";

/** The Responses API of OpenAI. */
export const responses: Protocol = {
  name: "responses",
  // ChatGPT has them at another place.
  path: /^(?:\/v1|\/backend-api\/codex)\/responses$/,
  read(body) {
    const input = needList(body, "input");
    if (input.length === 0) throw new Error("input is empty");
    return {
      model: need(body, "model", "string") as string,
      isStream: body["stream"] === true,
      tools: ((body["tools"] ?? []) as { name?: string; type?: string }[]).map(({ name, type }) => name ?? type ?? ""),
      texts: [...textsIn(body["instructions"]), ...textsIn(input)],
    };
  },
  stream(turn, model) {
    const id = `resp_${randomUUID()}`;
    const items = itemsOf(turn).flatMap((item, index): StreamEvent[] => [
      named("response.output_item.added", { output_index: index, item: emptied(item) }),
      ...deltasOf(item, index),
      named("response.output_item.done", { output_index: index, item }),
    ]);
    const open = { id, object: "response", status: "in_progress", model, output: [] };
    const events = [
      named("response.created", { response: open }),
      ...items,
      named("response.completed", { response: { ...(whole(turn, model) as object), id } }),
    ];
    return events.map(({ event, data }, at) => ({
      ...(event !== undefined && { event }),
      data: { ...(data as object), sequence_number: at },
    }));
  },
  whole,
  error: openAiError,
};

type Item = Record<string, unknown> & { type: "message" | "function_call" | "custom_tool_call" };

function itemsOf({ text, tools = [] }: Turn): Item[] {
  const content = [{ type: "output_text", text, annotations: [] }];
  const calls = tools.map(({ name, input }): Item => {
    const call = { id: `call_${randomUUID()}`, call_id: `call_${randomUUID()}`, name, status: "completed" };
    return typeof input === "string"
      ? { ...call, type: "custom_tool_call", input }
      : { ...call, type: "function_call", arguments: JSON.stringify(input) };
  });
  if (text === undefined) return calls;
  return [{ type: "message", id: `msg_${randomUUID()}`, role: "assistant", status: "completed", content }, ...calls];
}

function emptied(item: Item): Item {
  const open = { ...item, status: "in_progress" };
  if (item.type === "message") return { ...open, content: [] };
  return item.type === "function_call" ? { ...open, arguments: "" } : { ...open, input: "" };
}

function deltasOf(item: Item, index: number): StreamEvent[] {
  const place = { item_id: item["id"], output_index: index };
  if (item.type === "message") {
    const [part] = item["content"] as { text: string }[];
    const inPart = { ...place, content_index: 0 };
    return [
      named("response.content_part.added", { ...inPart, part: { ...part, text: "" } }),
      ...piecesOf(part?.text ?? "").map((delta) => named("response.output_text.delta", { ...inPart, delta })),
      named("response.output_text.done", { ...inPart, text: part?.text }),
      named("response.content_part.done", { ...inPart, part }),
    ];
  }
  const [type, field] =
    item.type === "function_call"
      ? ["response.function_call_arguments", "arguments"]
      : ["response.custom_tool_call_input", "input"];
  const text = String(item[field]);
  return [
    ...piecesOf(text).map((delta) => named(`${type}.delta`, { ...place, delta })),
    named(`${type}.done`, { ...place, [field]: text }),
  ];
}

function whole(turn: Turn, model: string): unknown {
  const { input, output, cacheRead } = usageOf(turn);
  return {
    ...{ id: `resp_${randomUUID()}`, object: "response", status: "completed", model, output: itemsOf(turn) },
    usage: {
      // Here, unlike in our own count, the input includes what came from the cache.
      input_tokens: input + cacheRead,
      input_tokens_details: { cached_tokens: cacheRead },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: input + cacheRead + output,
    },
  };
}

function named(type: string, data: Record<string, unknown>): StreamEvent {
  return { event: type, data: { type, ...data } };
}
