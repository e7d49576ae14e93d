// A small MCP server by stdin and stdout: its one tool writes what it is given into a file, with the variables that the server has.
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const TOOL = {
  name: "write_note",
  description: "Writes a note.",
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
};
const [file = "notes.jsonl"] = process.argv.slice(2);

function answer(method, params) {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "notes", version: "1.0.0" },
      };
    case "tools/list":
      return { tools: [TOOL] };
    case "tools/call": {
      const { NOTES_LEVEL: level, NOTES_TOKEN: token } = process.env;
      appendFileSync(file, `${JSON.stringify({ text: params.arguments.text, level, token })}\n`);
      return { content: [{ type: "text", text: "noted" }] };
    }
    case "ping":
      return {};
    default:
      return undefined;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const result = answer(method, params ?? {});
  const body = result === undefined ? { error: { code: -32601, message: `there is no ${method}` } } : { result };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...body })}\n`);
}
