import { join } from "node:path";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMcpServer, type HttpServer, type McpServer, serveHttp } from "../../src/mcp.js";
import { connectBy, ERAS, fieldsOf, type TestClient } from "../support/mcp/client.js";
import { processesWith } from "../support/processes/host-processes.js";
import { createRepository, createScratch, type Scratch } from "../support/scratch.js";

const [OURS, OTHERS] = ["the-token-of-the-first-client", "the-token-of-another-client"];
const INITIALIZE = {
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
};
let scratch: Scratch;
let mcp: McpServer;
let http: HttpServer;

beforeAll(async () => {
  scratch = createScratch();
  const repo = createRepository(join(scratch.path, "repo"));
  mcp = await createMcpServer({ tools: ["git"], sandbox: { repo }, push: { token: "a-token-for-pushes" } });
  http = await serveHttp(mcp, { tokens: [OURS, OTHERS], rate: 1_000 });
});
afterAll(async () => {
  await http.close();
  await mcp.close();
  scratch.remove();
});

async function connect(
  era: Parameters<typeof connectBy>[1] = ERAS[0]?.[1],
): Promise<{ client: TestClient; transport: StreamableHTTPClientTransport }> {
  const headers = { authorization: `Bearer ${OURS}` };
  const transport = new StreamableHTTPClientTransport(new URL(http.url), { requestInit: { headers } });
  return { client: await connectBy(transport, era), transport };
}

/** Sends a message as it is. */
async function send(message: object, headers: Record<string, string> = {}, more: RequestInit = {}): Promise<Response> {
  const usual = {
    authorization: `Bearer ${OURS}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, ...message });
  return await fetch(http.url, { method: "POST", headers: { ...usual, ...headers }, body, ...more });
}

async function begin(): Promise<Record<string, string>> {
  const answer = await send(INITIALIZE);
  await answer.text();
  return { "mcp-session-id": answer.headers.get("mcp-session-id") ?? "", "mcp-protocol-version": "2025-11-25" };
}

describe("sessions over HTTP", () => {
  it.each(ERAS)("let the server ask before it pushes, era %s", async (_, era) => {
    const { client } = await connect({ ...era, capabilities: { elicitation: { form: {} } } });
    const asked: string[] = [];
    client.client.setRequestHandler("elicitation/create", async ({ params }) => {
      asked.push(params.message);
      return { action: "decline" };
    });
    expect(await client.failure("push", { branch: "work" })).toMatch(/^permission_denied: The user refused to push/);
    expect(asked).toEqual(["Push 0 changed files to the branch work?"]);
    await client[Symbol.asyncDispose]();
  });

  it("belong to their token, and end when the client says so", async () => {
    const session = await begin();
    expect((await send({ method: "tools/list" }, session)).status).toBe(200);
    const others = { ...session, authorization: `Bearer ${OTHERS}` };
    for (const [method, headers, status] of [
      ["POST", others, 404],
      ["DELETE", others, 404],
      ["DELETE", session, 200],
      ["POST", session, 404],
      ["DELETE", session, 404],
    ] as const) {
      const answer = await send({ method: "ping" }, headers, { method, ...(method === "DELETE" && { body: null }) });
      expect([method, answer.status, await answer.text()]).toEqual([
        method,
        status,
        status === 404 ? expect.stringContaining("no such session") : "",
      ]);
    }
  });

  it("tell the calls of two clients with one token apart", async () => {
    const [first, second] = [await begin(), await begin()];
    const call = (marker: string): object => {
      const command = `sh -c 'sleep 600; :' ${marker} & sleep 600`;
      return { id: 7, method: "tools/call", params: { name: "exec", arguments: { command, yield_ms: 30_000 } } };
    };
    const markers = [`first-${process.pid}`, `second-${process.pid}`];
    const running = (): number[] => markers.map((marker) => Math.min(1, processesWith(marker).length));
    const answers = [send(call(markers[0] ?? ""), first), send(call(markers[1] ?? ""), second)];
    await expect.poll(running).toEqual([1, 1]);
    const cancelled = { method: "notifications/cancelled", params: { requestId: 7 }, id: undefined };
    expect((await send(cancelled, first)).status).toBe(202);
    await expect.poll(running).toEqual([0, 1]);
    await send(cancelled, second);
    await expect.poll(running).toEqual([0, 0]);
    for (const answer of answers) await (await answer).body?.cancel();
  });

  it("end a call whose connection is closed", async () => {
    const session = await begin();
    const marker = `closed-${process.pid}`;
    const running = (): unknown[] => processesWith(marker);
    const leaving = new AbortController();
    const command = `sh -c 'sleep 600; :' ${marker} & sleep 600`;
    const params = { name: "exec", arguments: { command } };
    const answer = await send({ method: "tools/call", params }, session, { signal: leaving.signal });
    await expect.poll(running).not.toEqual([]);
    leaving.abort();
    await expect(answer.text()).rejects.toThrow();
    await expect.poll(running).toEqual([]);
  });

  it("are ended, the oldest first, when a client begins too many", async () => {
    const all = [];
    for (let count = 0; count < 33; count += 1) all.push(await begin());
    const statuses = [];
    for (const session of [all[0], all[1], all[32]]) {
      const answer = await send({ method: "ping" }, session);
      await answer.text();
      statuses.push(answer.status);
    }
    expect(statuses).toEqual([404, 200, 200]);
  });

  it("are not needed for calls, and keep the sandbox that their token has", async () => {
    const { client } = await connect();
    const id = fieldsOf(await client.call("exec", { command: "touch here" }))["process_id"];
    expect(id).toMatch(/^p\d+$/);
    const params = { name: "exec", arguments: { command: "ls here" } };
    const single = await send({ method: "tools/call", params }, { "mcp-protocol-version": "2025-06-18" });
    expect(await single.text()).toContain("exit code 0\\nhere");
    const large = { name: "file_write", arguments: { path: "large", content: "x".repeat(1 << 20) } };
    const written = await send({ method: "tools/call", params: large }, {}, { signal: AbortSignal.timeout(20_000) });
    expect(await written.text()).toContain(`wrote ${1 << 20} bytes`);
    await client[Symbol.asyncDispose]();
  });
});
