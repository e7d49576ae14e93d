// An agent that speaks ACP and does what its prompt says: one JSON object a line.
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const options = JSON.parse(process.argv[2] ?? "{}");
const waiting = new Map();
let asked = 0;
let servers;
let cancelled = () => {};
const print = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

function call(method, params) {
  asked += 1;
  print({ id: `agent-${asked}`, method, params });
  return new Promise((resolve) => waiting.set(`agent-${asked}`, resolve));
}

const say = (sessionId, update) => print({ method: "session/update", params: { sessionId, update } });

/** Does the steps of a prompt, and ends with what the client answered. */
async function work(id, sessionId, text) {
  const answers = [];
  const names = {};
  for (const line of text.split("\n").filter((each) => each.startsWith("{"))) {
    const step = JSON.parse(line);
    const params = JSON.parse(
      JSON.stringify({ sessionId, ...step.params }).replaceAll("$TERMINAL", names.terminalId ?? ""),
    );
    if (step.call !== undefined) {
      const { result, error } = await call(step.call, params);
      Object.assign(names, result);
      answers.push(error === undefined ? result : { error: error.code });
    }
    if (step.flood !== undefined) {
      // The terminal waits for this file, which is there once the last request was refused.
      let refused = 0;
      const count = ({ error }) => {
        if (error !== undefined) refused += 1;
        if (refused === step.refused) writeFileSync("go", "");
      };
      const { terminalId } = names;
      const calls = Array.from({ length: step.flood }, () =>
        call("terminal/wait_for_exit", { sessionId, terminalId }).then(count),
      );
      await Promise.all(calls);
      answers.push(refused);
    }
    if (step.update !== undefined) say(sessionId, step.update);
    if (step.tellServers === true) answers.push(servers);
    if (step.long !== undefined) process.stdout.write(`${"x".repeat(step.long)}\n`);
    if (step.error !== undefined) return print({ id, error: step.error });
    if (step.exit !== undefined) process.exit(step.exit);
    if (step.stop !== undefined) return print({ id, result: { stopReason: step.stop } });
    if (step.hang === true) {
      await new Promise((resolve) => {
        cancelled = resolve;
      });
      await call("fs/write_text_file", { sessionId, path: `${process.cwd()}/cancelled.txt`, content: "cancelled\n" });
      return print({ id, result: { stopReason: "cancelled" } });
    }
  }
  say(sessionId, { sessionUpdate: "agent_message_chunk", content: { type: "text", text: JSON.stringify(answers) } });
  return print({ id, result: { stopReason: "end_turn", ...(options.usage && { usage: options.usage }) } });
}

const SESSION = { sessionId: "session-1", ...options.session };

process.on("SIGTERM", () => setTimeout(() => process.exit(0), options.slow ?? 0));
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === undefined) waiting.get(id)?.({ result, error });
  else if (method === "initialize") {
    process.stdout.write("a line beside the protocol\n");
    print({ id, result: { protocolVersion: options.version ?? 1, agentCapabilities: options.can ?? {} } });
  } else if (method === "session/new") {
    servers = params.mcpServers;
    print(options.refuse === undefined ? { id, result: SESSION } : { id, error: options.refuse });
  } else if (method === "session/load") {
    say(params.sessionId, {
      sessionUpdate: "agent_message_chunk",
      content: { type: "text", text: "what was said before" },
    });
    say(params.sessionId, { sessionUpdate: "usage_update", used: 1, size: 2, cost: { amount: 0.5, currency: "USD" } });
    print({ id, result: {} });
  } else if (method.startsWith("session/set_")) {
    say(SESSION.sessionId, { sessionUpdate: "plan", entries: [] });
    print({ id, result: {} });
  } else if (method === "session/prompt") void work(id, params.sessionId, params.prompt[0].text);
  else if (method === "session/cancel") cancelled();
}
