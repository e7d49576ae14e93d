/** A model of the AI SDK's second edition, which Mastra takes, that calls these tools one after the other. */
export function scriptedLanguageModel(calls: readonly (readonly [name: string, input: object])[]): {
  model: object;
  /** What each tool returned, as the model saw it. */
  seen: string[];
} {
  const seen: string[] = [];
  let next = 0;
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
  const turn = (prompt: readonly { role: string; content: unknown }[]): { content: object[]; finishReason: string } => {
    const last = prompt.at(-1);
    if (last?.role === "tool") seen.push(toText(last.content));
    const call = calls[next++];
    if (call === undefined) return { content: [{ type: "text", text: "done" }], finishReason: "stop" };
    const [toolName, input] = call;
    const content = [{ type: "tool-call", toolCallId: `call-${next}`, toolName, input: JSON.stringify(input) }];
    return { content, finishReason: "tool-calls" };
  };
  const model = {
    specificationVersion: "v2",
    provider: "scripted",
    modelId: "scripted",
    supportedUrls: {},
    doGenerate: async ({ prompt }: { prompt: never[] }) => ({ ...turn(prompt), usage, warnings: [] }),
    doStream: async ({ prompt }: { prompt: never[] }) => {
      const { content, finishReason } = turn(prompt);
      const parts = [
        { type: "stream-start", warnings: [] },
        ...content.flatMap((part) => streamed(part as { type: string; text?: string })),
        { type: "finish", finishReason, usage },
      ];
      return { stream: ReadableStream.from(parts) };
    },
  };
  return { model, seen };
}

function streamed(part: { type: string; text?: string }): object[] {
  if (part.type !== "text") return [part];
  return [
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: part.text },
    { type: "text-end", id: "1" },
  ];
}

function toText(content: unknown): string {
  const [{ output } = { output: undefined }] = content as { output?: { value?: unknown } }[];
  return typeof output?.value === "string" ? output.value : JSON.stringify(output);
}
