// Stands in for Claude Code, without its own thinking: so many turns, each a request to a model and a command, in the stream of JSON that it prints.
import { execFile } from "node:child_process";
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";

if (process.argv.includes("--version")) {
  console.log("2.1.327 (Claude Code)");
  process.exit(0);
}
const turns = Number(/\d+/.exec(await text(process.stdin))?.[0]);
const agent = new Agent({ keepAlive: true });
const body = JSON.stringify({ messages: [{ role: "user", content: "x".repeat(20_000) }] });
const say = (event) => process.stdout.write(`${JSON.stringify(event)}\n`);

function ask() {
  return new Promise((resolve, reject) => {
    const asked = request(process.env.MODEL_URL, { method: "POST", agent }, (answer) => resolve(text(answer)));
    asked.once("error", reject);
    asked.end(body);
  });
}

say({ type: "system", subtype: "init", session_id: "s-1", model: "none" });
for (let turn = 0; turn < turns; turn += 1) {
  const answer = await ask();
  const usage = { input_tokens: 1000, output_tokens: 100 };
  const use = { type: "tool_use", id: `t-${turn}`, name: "Bash", input: { command: "true" } };
  say({ type: "assistant", message: { id: `m-${turn}`, content: [{ type: "text", text: answer }, use], usage } });
  await promisify(execFile)("true");
  const result = { type: "tool_result", tool_use_id: use.id, content: answer };
  say({ type: "user", message: { content: [result] } });
}
agent.destroy();
say({ type: "result", subtype: "success", is_error: false, num_turns: turns, result: "done", session_id: "s-1" });
