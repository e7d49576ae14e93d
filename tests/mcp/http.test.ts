import { type ClientRequest, request } from "node:http";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RateLimit } from "../../src/mcp/http/rate-limit.js";
import { createMcpServer, type HttpServer, type McpServer, serveHttp } from "../../src/mcp.js";
import { listSandboxes } from "../../src/sandbox.js";
import { connectBy, ERAS, fieldsOf, type TestClient } from "../support/mcp/client.js";
import { processesWith } from "../support/processes/host-processes.js";
import { createScratch, type Scratch } from "../support/scratch.js";

const [OURS, OTHERS] = ["the-token-of-the-first-client", "the-token-of-another-client"];
let scratch: Scratch;
let mcp: McpServer;
let http: HttpServer;

beforeAll(async () => {
  scratch = createScratch();
  mcp = await createMcpServer({ multi: true });
  http = await serveHttp(mcp, {
    tokens: [OURS, OTHERS],
    allowHosts: ["box.example"],
    allowOrigins: ["https://page.example"],
  });
});
afterAll(async () => {
  await http.close();
  await mcp.close();
  scratch.remove();
});

async function connect(token: string, era: Parameters<typeof connectBy>[1] = {}): Promise<TestClient> {
  const headers = { authorization: `Bearer ${token}` };
  return await connectBy(new StreamableHTTPClientTransport(new URL(http.url), { requestInit: { headers } }), era);
}

/** Sends a request as it is, and gives its status and its body. */
async function send(
  headers: Record<string, string>,
  body: string = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
  { method = "POST", path = "/mcp" }: { method?: string; path?: string } = {},
): Promise<{ status: number | undefined; text: string; headers: NodeJS.Dict<string | string[]> }> {
  const { port } = new URL(http.url);
  const usual = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  return await new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, method, headers: { ...usual, ...headers } }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve({ status: response.statusCode, text, headers: response.headers }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const bearer = { authorization: `Bearer ${OURS}` };

describe("a server over HTTP", () => {
  it.each(ERAS)("serves the official client, era %s, and keeps its sandboxes between requests", async (_, era) => {
    await using client = await connect(OURS, era);
    const id = fieldsOf(await client.call("sandbox_create", {}))["sandbox_id"];
    await client.text("file_write", { sandbox_id: id, path: "x", content: "kept" });
    expect(await client.text("exec", { sandbox_id: id, command: "cat x" })).toBe("exit code 0\nkept");
    await client.text("sandbox_destroy", { sandbox_id: id });
  });

  it.each(ERAS)("kills the tree when the client cancels, era %s", async (year, era) => {
    await using client = await connect(OURS, era);
    const id = fieldsOf(await client.call("sandbox_create", {}))["sandbox_id"];
    const marker = `cancelled-over-http-${year}-${process.pid}`;
    const running = (): unknown[] => processesWith(marker);
    const stop = new AbortController();
    const command = `sh -c 'sleep 600; :' ${marker} & sleep 600`;
    const call = client.call("exec", { sandbox_id: id, command }, { signal: stop.signal });
    call.catch(() => undefined);
    await expect.poll(running).not.toEqual([]);
    stop.abort();
    await expect(call).rejects.toThrow();
    // Each command sees its own processes only, so this is asked from outside.
    await expect.poll(running).toEqual([]);
    await client.text("sandbox_destroy", { sandbox_id: id });
  });

  it("gives a sandbox to its token only", async () => {
    await using first = await connect(OURS);
    await using second = await connect(OTHERS);
    const id = String(fieldsOf(await first.call("sandbox_create", {}))["sandbox_id"]);
    expect(await second.text("sandbox_list")).toBe("there is none");
    expect(await second.failure("exec", { sandbox_id: id, command: "ls" })).toMatch(/^not_found: /);
    expect(await second.failure("sandbox_destroy", { sandbox_id: id })).toMatch(/^not_found: /);
    await first.text("sandbox_destroy", { sandbox_id: id });
  });

  it("refuses without a token, or with a wrong one, and opens nothing", async () => {
    for (const authorization of [
      undefined,
      "",
      "Bearer",
      "Bearer wrong-token-wrong-token",
      `Basic ${OURS}`,
      `Bearer ${OURS}x`,
    ]) {
      const { status, text, headers } = await send(authorization === undefined ? {} : { authorization });
      expect([authorization, status]).toEqual([authorization, 401]);
      expect(headers["www-authenticate"]).toContain("Bearer");
      expect(text).not.toContain(OURS);
    }
    expect(await listSandboxes()).toEqual([]);
  });

  it("serves only its own hosts and known pages", async () => {
    const cases: [Record<string, string>, number][] = [
      [{}, 200],
      [{ host: "localhost" }, 200],
      [{ host: "[::1]:1234" }, 200],
      [{ host: "box.example" }, 200],
      [{ host: "evil.example" }, 403],
      [{ host: "127.0.0.1.evil.example" }, 403],
      [{ host: "evil.example@127.0.0.1" }, 403],
      [{ origin: "http://localhost:3000" }, 200],
      [{ origin: "https://page.example" }, 200],
      [{ origin: "https://evil.example" }, 403],
      [{ origin: "null" }, 403],
    ];
    for (const [headers, status] of cases) {
      expect([headers, (await send({ ...bearer, ...headers })).status]).toEqual([headers, status]);
      // Nobody learns from the answer whether a token would have been right.
      if (status === 403) expect((await send(headers)).status).toBe(403);
    }
  });

  it("refuses what is too large, broken, or elsewhere", async () => {
    expect((await send(bearer, "{ broken")).status).toBe(400);
    expect((await send({ ...bearer, "content-length": String(64 << 20) }, "")).status).toBe(413);
    expect((await send({ ...bearer, "transfer-encoding": "chunked" }, "x".repeat(11 << 20))).status).toBe(413);
    expect((await send(bearer, undefined, { path: "/" })).status).toBe(404);
    expect((await send(bearer, undefined, { path: "/mcp/../x" })).status).toBe(404);
    expect((await send(bearer, "", { method: "GET" })).status).toBe(405);
  });

  it.each(ERAS)("takes requests of up to 10 MiB, era %s", async (_, era) => {
    await using client = await connect(OURS, era);
    const id = fieldsOf(await client.call("sandbox_create", {}))["sandbox_id"];
    const content = "x".repeat(9 << 20);
    expect(await client.text("file_write", { sandbox_id: id, path: "large", content })).toBe(
      `wrote ${9 << 20} bytes to large`,
    );
    await client.text("sandbox_destroy", { sandbox_id: id });
  });

  it("lets a page of a known origin read its answers, as browsers ask for it", async () => {
    const origin = "https://page.example";
    const ask = { "access-control-request-method": "POST", "access-control-request-headers": "authorization,mcp-name" };
    const preflight = await send({ origin, ...ask }, "", { method: "OPTIONS" });
    expect(preflight.status).toBe(204);
    expect(preflight.headers).toMatchObject({
      "access-control-allow-origin": origin,
      "access-control-allow-methods": "GET, POST, DELETE",
      "access-control-allow-headers": "authorization,mcp-name",
    });
    for (const headers of [{ ...bearer, origin }, { origin }]) {
      expect((await send(headers)).headers["access-control-allow-origin"]).toBe(origin);
    }
    const evil = await send({ origin: "https://evil.example", ...ask }, "", { method: "OPTIONS" });
    expect([evil.status, evil.headers["access-control-allow-origin"]]).toEqual([403, undefined]);
    expect((await send({}, "", { method: "OPTIONS" })).status).toBe(401);
  });

  it("sends the head of a stream at once", async () => {
    await using client = await connect(OURS);
    const id = fieldsOf(await client.call("sandbox_create", {}))["sandbox_id"];
    const params = { name: "exec", arguments: { sandbox_id: id, command: "sleep 600" } };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
    const accept = "application/json, text/event-stream";
    const headers = { ...bearer, accept, "content-type": "application/json", "mcp-protocol-version": "2025-06-18" };
    // It would come with the first sign of life, after 15 seconds.
    const answer = await fetch(http.url, { method: "POST", headers, body, signal: AbortSignal.timeout(10_000) });
    expect(answer.headers.get("content-type")).toBe("text/event-stream");
    await answer.body?.cancel();
    await client.text("sandbox_destroy", { sandbox_id: id });
  });

  it("bounds how many requests of a token are open, and leaves the others theirs", async () => {
    await using many = await serveHttp(mcp, { tokens: [OURS, OTHERS], rate: 1_000 });
    const { port } = new URL(many.url);
    const status = async (sent: ClientRequest): Promise<number | undefined> =>
      await new Promise((resolve) => sent.on("response", (answer) => resolve(answer.resume().statusCode)));
    const open = (token: string): ClientRequest => {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const sent = request({ host: "127.0.0.1", port, path: "/mcp", method: "POST", headers });
      sent.on("error", () => undefined).write("{");
      return sent;
    };
    const all = Array.from({ length: 64 }, () => open(OURS));
    await expect.poll(() => status(open(OURS))).toBe(429);
    const other = open(OTHERS);
    other.end("}");
    expect(await status(other)).toBe(400);
    for (const sent of all) sent.destroy();
    const last = async (): Promise<number | undefined> => {
      const sent = open(OURS);
      sent.end("}");
      return await status(sent);
    };
    await expect.poll(last).toBe(400);
  });

  it("limits how fast a token may ask", () => {
    const limit = new RateLimit(10);
    const take = (now: number): boolean => limit.take("one", now);
    expect(Array.from({ length: 21 }, () => take(0)).filter(Boolean)).toHaveLength(20);
    expect(limit.take("another", 0)).toBe(true);
    expect(take(99)).toBe(false);
    expect(take(200)).toBe(true);
  });

  it("answers 429 to a token that asks too fast", async () => {
    await using slow = await serveHttp(mcp, { tokens: [OURS], rate: 1 });
    const ask = async (): Promise<number> =>
      (await fetch(slow.url, { method: "POST", headers: bearer, body: "{}" })).status;
    const all = await Promise.all(Array.from({ length: 10 }, ask));
    expect(all.filter((status) => status === 429).length).toBeGreaterThanOrEqual(5);
  });

  it("refuses options that are not safe", async () => {
    await expect(serveHttp(mcp, { tokens: [] })).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(serveHttp(mcp, { tokens: ["short"] })).rejects.toMatchObject({ code: "invalid_argument" });
    const { port } = new URL(http.url);
    await expect(serveHttp(mcp, { tokens: [OURS], port: Number(port) })).rejects.toMatchObject({ code: "conflict" });
  });
});
