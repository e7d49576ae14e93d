// An agent written with the draft of version 2 in the protocol's SDK. It speaks no other version.
import { writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { agent, methods, ndJsonStream } from "@agentclientprotocol/sdk/experimental/v2";

const { initialize, session } = methods.agent;
const { requestPermission, update: tell } = methods.client.session;
const TOOL = { toolCallId: "1", title: "Write", kind: "edit", rawInput: { path: "sdk.txt" } };
const options = [{ optionId: "yes", name: "Yes", kind: "allow_once" }];
const said = [];

async function work(sessionId, text, client) {
  const say = (update) => client.notify(tell, { sessionId, update });
  await say({ sessionUpdate: "state_update", state: "running" });
  await say({ sessionUpdate: "tool_call_update", ...TOOL, status: "pending" });
  const subject = { type: "tool_call", toolCall: TOOL };
  const { outcome } = await client.request(requestPermission, { sessionId, title: "Write?", subject, options });
  writeFileSync("sdk.txt", "by version 2\n");
  await say({ sessionUpdate: "tool_call_update", toolCallId: "1", status: "completed" });
  said.push(text);
  const content = [{ type: "text", text: JSON.stringify({ outcome, said }) }];
  await say({ sessionUpdate: "agent_message", messageId: "answer", content });
  await say({ sessionUpdate: "state_update", state: "idle", stopReason: "end_turn" });
}

agent({ name: "scripted" })
  .onRequest(initialize, () => ({
    protocolVersion: 2,
    info: { name: "scripted", version: "1.0.0" },
    capabilities: { session: {} },
  }))
  .onRequest(session.new, () => ({ sessionId: "sdk-2" }))
  .onRequest(session.resume, async ({ params: { sessionId }, client }) => {
    await client.notify(tell, { sessionId, update: { sessionUpdate: "state_update", state: "idle" } });
    return {};
  })
  .onRequest(session.prompt, ({ params: { sessionId, prompt }, client }) => {
    setImmediate(() => void work(sessionId, prompt[0].text, client));
    return { messageId: "prompt" };
  })
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
