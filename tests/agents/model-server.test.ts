import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type ModelServer, startModelServer } from "./model-server.js";

let server: ModelServer;
beforeAll(async () => {
  server = await startModelServer();
});
beforeEach(() => server.play([]));
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`http://127.0.0.1:${server.port}${path}`, { method: "POST", body: JSON.stringify(body), headers });

/** A request of each protocol that asks for a stream, and where its answer has what was said. */
const SPOKEN = [
  {
    path: "/v1/messages",
    body: { model: "m", max_tokens: 1, stream: true, messages: [{ role: "user", content: "hi" }] },
    said: (all: Event[]) => all.map(({ delta }) => delta?.text ?? "").join(""),
    tool: (all: Event[]) => all.map(({ delta }) => delta?.partial_json ?? "").join(""),
    last: { type: "message_stop" },
  },
  {
    path: "/v1/responses",
    body: { model: "m", stream: true, input: [{ role: "user", content: "hi" }] },
    said: (all: Event[]) => pick(all, "response.output_text.delta"),
    tool: (all: Event[]) => pick(all, "response.function_call_arguments.delta"),
    last: { type: "response.completed", response: { usage: { input_tokens: 7, output_tokens: 3 } } },
  },
  {
    path: "/v1/chat/completions",
    body: { model: "m", stream: true, messages: [{ role: "user", content: "hi" }] },
    said: (all: Event[]) => all.map(({ choices }) => choices?.[0]?.delta?.content ?? "").join(""),
    tool: (all: Event[]) =>
      all.map(({ choices }) => choices?.[0]?.delta?.tool_calls?.[0]?.function?.arguments ?? "").join(""),
    last: { usage: { prompt_tokens: 7, completion_tokens: 3 } },
  },
  {
    path: "/v1beta/models/m:streamGenerateContent",
    body: { contents: [{ role: "user", parts: [{ text: "hi" }] }] },
    said: (all: Event[]) => all.map(({ candidates }) => candidates?.[0]?.content.parts[0]?.text ?? "").join(""),
    tool: (all: Event[]) => JSON.stringify(all.at(-1)?.candidates?.[0]?.content.parts[0]?.functionCall?.args),
    last: { usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 3 } },
  },
];

/** The fields of any protocol's events that the tests look at. */
interface Event {
  type?: string;
  delta?: { text?: string; partial_json?: string } & string;
  choices?: { delta?: { content?: string; tool_calls?: { function?: { arguments?: string } }[] } }[];
  candidates?: { content: { parts: { text?: string; functionCall?: { args: unknown } }[] } }[];
}

const pick = (all: Event[], type: string): string =>
  all.flatMap((event) => (event.type === type ? [event.delta ?? ""] : [])).join("");

const eventsOf = (text: string): Event[] =>
  text
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice("data: ".length)) as Event);

describe.each(SPOKEN)("a scripted model at $path", ({ path, body, said, tool, last }) => {
  test("streams text, tool calls and usage, and notes the key", async () => {
    const text = "a text that is longer than one piece of it";
    const input = { path: "a.txt", content: "long enough for pieces" };
    server.play([{ text, tools: [{ name: "write", input }], usage: { input: 7, output: 3 } }]);
    const response = await post(path, body, { "x-api-key": "k" });
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    const events = eventsOf(await response.text());
    expect(said(events)).toBe(text);
    expect(tool(events)).toBe(JSON.stringify(input));
    expect(events.at(-1)).toMatchObject(last);
    expect(server.requests).toMatchObject([{ path, model: "m", auth: { "x-api-key": "k" }, texts: ["hi"] }]);
    expect(server.faults).toEqual([]);
  });

  test("answers with an error, cuts a stream, and is silent until the client goes", async () => {
    server.play([{ status: 529 }, { text: "x".repeat(200), stop: "cut" }, { text: "x".repeat(200), stop: "hang" }]);
    const refused = await post(path, body);
    expect([refused.status, await refused.json()]).toEqual([
      529,
      expect.objectContaining({ error: expect.anything() }),
    ]);
    await expect((await post(path, body)).text()).rejects.toThrow("terminated");
    const silent = await post(path, body);
    const first = await silent.body?.getReader().read();
    expect(Buffer.from(first?.value ?? []).toString()).toContain("data: ");
    expect(server.faults).toEqual([]);
  });

  test("notes what is malformed, unknown, or more than was scripted", async () => {
    await post(path, { ...body, messages: "no list", input: "no list", contents: "no list" });
    await post("/v1/other", {});
    await post(path, body);
    expect(server.faults).toEqual([
      expect.stringContaining('"no list", not of type array'),
      "POST /v1/other: there is no such path",
      "request 1: the script has 0 turns",
    ]);
  });
});
