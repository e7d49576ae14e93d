import { randomUUID } from "node:crypto";
import { openAiError } from "./openai-errors.js";
import { need, needList, type Protocol, textsIn } from "./protocol.js";
import { piecesOf, type Turn, usageOf } from "./turn.js";

/** The chat completions of OpenAI, which most gateways speak. */
export const chat: Protocol = {
  name: "chat",
  path: /^\/v1\/chat\/completions$/,
  end: "data: [DONE]\n\n",
  read(body) {
    const messages = needList(body, "messages");
    if (messages.length === 0) throw new Error("messages is empty");
    const tools = (body["tools"] ?? []) as { function?: { name?: string } }[];
    return {
      model: need(body, "model", "string") as string,
      isStream: body["stream"] === true,
      tools: tools.map((tool) => tool.function?.name ?? ""),
      texts: textsIn(messages),
    };
  },
  stream(turn, model) {
    const chunk = (delta: unknown, more: Record<string, unknown> = {}) => ({
      data: {
        ...head("chat.completion.chunk", model),
        choices: [{ index: 0, delta, finish_reason: null, ...more }],
      },
    });
    return [
      chunk({ role: "assistant", content: "" }),
      ...piecesOf(turn.text ?? "").map((content) => chunk({ content })),
      ...callsOf(turn).flatMap((call, index) => [
        chunk({ tool_calls: [{ index, ...call, function: { ...call.function, arguments: "" } }] }),
        ...piecesOf(call.function.arguments).map((piece) =>
          chunk({ tool_calls: [{ index, function: { arguments: piece } }] }),
        ),
      ]),
      chunk({}, { finish_reason: finishOf(turn) }),
      { data: { ...head("chat.completion.chunk", model), choices: [], usage: toUsage(turn) } },
    ];
  },
  whole: (turn, model) => ({
    ...head("chat.completion", model),
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: turn.text ?? null,
          ...(turn.tools !== undefined && { tool_calls: callsOf(turn) }),
        },
        finish_reason: finishOf(turn),
      },
    ],
    usage: toUsage(turn),
  }),
  error: openAiError,
};

function callsOf({
  tools = [],
}: Turn): { id: string; type: "function"; function: { name: string; arguments: string } }[] {
  return tools.map(({ name, input }) => ({
    id: `call_${randomUUID()}`,
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
  }));
}

function head(object: string, model: string): Record<string, unknown> {
  return { id: `chatcmpl-${randomUUID()}`, object, created: 1, model };
}

function finishOf({ tools = [] }: Turn): string {
  return tools.length > 0 ? "tool_calls" : "stop";
}

function toUsage(turn: Turn): Record<string, unknown> {
  const { input, output, cacheRead } = usageOf(turn);
  return {
    prompt_tokens: input + cacheRead,
    completion_tokens: output,
    total_tokens: input + cacheRead + output,
    prompt_tokens_details: { cached_tokens: cacheRead },
  };
}
