import { randomUUID } from "node:crypto";
import { need, needList, type Protocol, type StreamEvent, textsIn } from "./protocol.js";
import { piecesOf, type Turn, usageOf } from "./turn.js";

const KINDS: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  429: "rate_limit_error",
  500: "api_error",
  529: "overloaded_error",
};

/** The Messages API of Anthropic. */
export const anthropic: Protocol = {
  name: "anthropic",
  path: /^\/v1\/messages$/,
  read(body) {
    const messages = needList(body, "messages");
    need(body, "max_tokens", "number");
    const roles = messages.map(({ role }) => role);
    if (!roles.includes("user")) throw new Error("no message is the user's");
    if (roles.at(-1) === "assistant") throw new Error("the last message is the model's own");
    return {
      model: need(body, "model", "string") as string,
      isStream: body["stream"] === true,
      tools: ((body["tools"] ?? []) as { name?: string }[]).map(({ name }) => name ?? ""),
      texts: [...textsIn(body["system"]), ...textsIn(messages)],
    };
  },
  stream(turn, model) {
    const message = { ...shell(turn, model), content: [], stop_reason: null };
    const blocks = contentOf(turn).flatMap((block, index): StreamEvent[] => [
      named("content_block_start", { index, content_block: emptied(block) }),
      ...piecesOf(block.type === "text" ? block.text : JSON.stringify(block.input)).map((piece) =>
        named("content_block_delta", {
          index,
          delta:
            block.type === "text"
              ? { type: "text_delta", text: piece }
              : { type: "input_json_delta", partial_json: piece },
        }),
      ),
      named("content_block_stop", { index }),
    ]);
    const delta = { stop_reason: stopOf(turn), stop_sequence: null };
    return [
      named("message_start", { message }),
      ...blocks,
      named("message_delta", { delta, usage: { output_tokens: usageOf(turn).output } }),
      named("message_stop", {}),
    ];
  },
  whole: (turn, model) => ({ ...shell(turn, model), content: contentOf(turn), stop_reason: stopOf(turn) }),
  error: (status, message) => ({ type: "error", error: { type: KINDS[status] ?? "api_error", message } }),
};

type Block = { type: "text"; text: string } | { type: "tool_use"; id: string; name: string; input: unknown };

function contentOf({ text, tools = [] }: Turn): Block[] {
  return [
    ...(text === undefined ? [] : [{ type: "text" as const, text }]),
    ...tools.map(({ name, input }) => ({ type: "tool_use" as const, id: `toolu_${randomUUID()}`, name, input })),
  ];
}

function emptied(block: Block): Block {
  return block.type === "text" ? { ...block, text: "" } : { ...block, input: {} };
}

function shell(turn: Turn, model: string): Record<string, unknown> {
  const { input, output, cacheRead, cacheWrite } = usageOf(turn);
  return {
    ...{ id: `msg_${randomUUID()}`, type: "message", role: "assistant", model, stop_sequence: null },
    usage: {
      input_tokens: input,
      output_tokens: output,
      cache_read_input_tokens: cacheRead,
      cache_creation_input_tokens: cacheWrite,
    },
  };
}

function stopOf({ tools = [] }: Turn): string {
  return tools.length > 0 ? "tool_use" : "end_turn";
}

function named(type: string, data: Record<string, unknown>): StreamEvent {
  return { event: type, data: { type, ...data } };
}
