import { randomUUID } from "node:crypto";
import { needList, type Protocol, textsIn } from "./protocol.js";
import { piecesOf, type Turn, usageOf } from "./turn.js";

const KINDS: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  503: "UNAVAILABLE",
};
const PATH = /^\/v1(?:beta)?\/models\/([^/:]+):(streamGenerateContent|generateContent)$/;

/** The Gemini API. */
export const gemini: Protocol = {
  name: "gemini",
  path: PATH,
  read(body, path) {
    const contents = needList(body, "contents");
    if (contents.length === 0) throw new Error("contents is empty");
    const [, model = "", act] = PATH.exec(path) ?? [];
    const tools = (body["tools"] ?? []) as { functionDeclarations?: { name?: string }[] }[];
    return {
      model,
      isStream: act === "streamGenerateContent",
      tools: tools.flatMap(({ functionDeclarations = [] }) => functionDeclarations.map(({ name }) => name ?? "")),
      texts: [...textsIn(body["systemInstruction"]), ...textsIn(contents)],
    };
  },
  stream(turn, model) {
    const parts = [
      ...piecesOf(turn.text ?? "").map((text): unknown => ({ text })),
      ...(turn.tools ?? []).map(({ name, input }) => ({ functionCall: { name, args: input } })),
    ];
    const all = parts.length === 0 ? [{ text: "" }] : parts;
    return all.map((part, at) => ({ data: answer([part], turn, model, at === all.length - 1) }));
  },
  whole(turn, model) {
    const parts = [
      ...(turn.text === undefined ? [] : [{ text: turn.text }]),
      ...(turn.tools ?? []).map(({ name, input }) => ({ functionCall: { name, args: input } })),
    ];
    return answer(parts, turn, model, true);
  },
  error: (status, message) => ({ error: { code: status, message, status: KINDS[status] ?? "UNKNOWN" } }),
};

function answer(parts: readonly unknown[], turn: Turn, model: string, isLast: boolean): unknown {
  const { input, output, cacheRead } = usageOf(turn);
  const usageMetadata = {
    promptTokenCount: input + cacheRead,
    candidatesTokenCount: output,
    cachedContentTokenCount: cacheRead,
    totalTokenCount: input + cacheRead + output,
  };
  return {
    candidates: [{ index: 0, content: { role: "model", parts }, ...(isLast && { finishReason: "STOP" }) }],
    modelVersion: model,
    responseId: randomUUID(),
    ...(isLast && { usageMetadata }),
  };
}
