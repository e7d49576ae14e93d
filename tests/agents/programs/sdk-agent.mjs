// An agent written with the protocol's own SDK: it asks for permission, writes and reads a file by its client, and runs a command there.
import { Readable, Writable } from "node:stream";
import { agent, methods, ndJsonStream, PROTOCOL_VERSION } from "@agentclientprotocol/sdk";

const { initialize, session } = methods.agent;
const { fs } = methods.client;
const options = [
  { optionId: "no", name: "No", kind: "reject_once" },
  { optionId: "yes", name: "Yes", kind: "allow_once" },
];
let cwd = "";

async function work({ params: { sessionId }, client }) {
  const asked = { sessionId, toolCall: { toolCallId: "1", title: "Write" }, options };
  const { outcome } = await client.request(methods.client.session.requestPermission, asked);
  const path = `${cwd}/sdk.txt`;
  await client.request(fs.writeTextFile, { sessionId, path, content: "by the SDK\n" });
  const { content } = await client.request(fs.readTextFile, { sessionId, path });
  const terminal = await client.createTerminal({ sessionId, command: "cat", args: ["sdk.txt"], cwd });
  const { exitCode } = await terminal.waitForExit();
  const { output } = await terminal.currentOutput();
  await terminal.release();
  const text = JSON.stringify({ outcome, content, exitCode, output });
  const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text } };
  await client.notify(methods.client.session.update, { sessionId, update });
  return { stopReason: "end_turn" };
}

agent({ name: "scripted" })
  .onRequest(initialize, () => ({ protocolVersion: PROTOCOL_VERSION, agentCapabilities: {} }))
  .onRequest(session.new, ({ params }) => {
    cwd = params.cwd;
    return { sessionId: "sdk-1" };
  })
  .onRequest(session.prompt, work)
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
