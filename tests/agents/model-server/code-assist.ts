import { gemini } from "./gemini.js";
import type { Protocol } from "./protocol.js";

const PATH = /^\/v1internal:(?:streamGenerateContent|generateContent)$/;

/** Gemini as Google's Code Assist has it, which a login with an account leads to: requests and answers have one more layer. */
export const codeAssist: Protocol = {
  name: "code assist",
  path: PATH,
  read(body, path) {
    const request = (body["request"] ?? {}) as Record<string, unknown>;
    return gemini.read(request, `/v1/models/${String(body["model"])}:${path.split(":")[1]}`);
  },
  stream: (turn, model) => gemini.stream(turn, model).map(({ data }) => ({ data: { response: data } })),
  whole: (turn, model) => ({ response: gemini.whole(turn, model) }),
  error: gemini.error,
};
