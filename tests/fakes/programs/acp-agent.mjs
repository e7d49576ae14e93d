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

/** Ends a prompt: in version 1 by the answer to it, in version 2 by becoming idle. */
function end(id, sessionId, { error, ...result }) {
  if (options.only !== 2) return print({ id, ...(error === undefined ? { result } : { error }) });
  const reason = error === undefined ? { stopReason: result.stopReason } : { stopReason: "error", error };
  return say(sessionId, { sessionUpdate: "state_update", state: "idle", ...reason });
}

/** Does the steps of a prompt, and ends with what the client answered. */
async function work(id, sessionId, text) {
  const answers = [];
  const names = {};
  if (options.only === 2) {
    // What it was before is no end.
    say(sessionId, { sessionUpdate: "state_update", state: "idle", stopReason: "end_turn" });
    say(sessionId, { sessionUpdate: "state_update", state: "running" });
    print({ id, result: { messageId: "m-1" } });
  }
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
    if (step.error !== undefined) return end(id, sessionId, { error: step.error });
    if (step.exit !== undefined) process.exit(step.exit);
    if (step.stop !== undefined) return end(id, sessionId, { stopReason: step.stop });
    if (step.hang === true) {
      await new Promise((resolve) => {
        cancelled = resolve;
      });
      await call("fs/write_text_file", { sessionId, path: `${process.cwd()}/cancelled.txt`, content: "cancelled\n" });
      return end(id, sessionId, { stopReason: "cancelled" });
    }
  }
  say(sessionId, { sessionUpdate: "agent_message_chunk", content: { type: "text", text: JSON.stringify(answers) } });
  return end(id, sessionId, { stopReason: "end_turn", ...(options.usage && { usage: options.usage }) });
}

const SESSION = { sessionId: "session-1", ...options.session };

process.on("SIGTERM", () => setTimeout(() => process.exit(0), options.slow ?? 0));
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === undefined) waiting.get(id)?.({ result, error });
  else if (method === "initialize" && options.only === 2 && params.protocolVersion !== 2) {
    print({ id, error: options.deaf ?? { code: -32022, message: "unsupported protocol version" } });
  } else if (method === "initialize" && options.only === 2) {
    const isKnown = typeof params.info?.name === "string" && params.clientInfo === undefined;
    const result = { protocolVersion: 2, info: { name: "scripted", version: "1" }, capabilities: options.can ?? {} };
    print(isKnown ? { id, result } : { id, error: { code: -32602, message: "info is missing" } });
  } else if (method === "initialize") {
    process.stdout.write("a line beside the protocol\n");
    print({ id, result: { protocolVersion: options.version ?? 1, agentCapabilities: options.can ?? {} } });
  } else if (method === "session/new") {
    servers = params.mcpServers;
    print(options.refuse === undefined ? { id, result: SESSION } : { id, error: options.refuse });
  } else if (method === "session/resume") {
    say(params.sessionId, { sessionUpdate: "state_update", state: "idle" });
    print({ id, result: {} });
  } else if (method === "session/load") {
    // Some answer first, and repeat the session afterwards.
    if (options.isHasty) print({ id, result: { modes: { currentModeId: "code", availableModes: [] } } });
    say(params.sessionId, {
      sessionUpdate: "agent_message_chunk",
      content: { type: "text", text: "what was said before" },
    });
    say(params.sessionId, { sessionUpdate: "usage_update", used: 1, size: 2, cost: { amount: 0.5, currency: "USD" } });
    if (!options.isHasty) print({ id, result: {} });
  } else if (method.startsWith("session/set_")) {
    if (options.only === 2 && params.type !== "id") print({ id, error: { code: -32602, message: "type is missing" } });
    say(SESSION.sessionId, { sessionUpdate: "plan", entries: [] });
    print({ id, result: {} });
  } else if (method === "session/prompt") void work(id, params.sessionId, params.prompt[0].text);
  else if (method === "session/cancel") cancelled();
}
