import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import type { ClientStream } from "./client-stream.js";
import { dial } from "./dial.js";
import { withoutHopByHop } from "./hop-by-hop.js";
import { hostInUrl } from "./host-name.js";
import { Refusal } from "./refusal.js";
import { type Framing, framingOf, readBody } from "./request-body.js";
import { MAX_HEAD_BYTES, type RequestHead } from "./request-head.js";
import type { RequestTarget } from "./request-target.js";
import type { Exchange } from "./tunnel.js";

/** Methods without a body by default. */
const BODILESS = ["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"];

/** Forwards one request to its origin and the answer back, then ends the connection. */
export async function forward(
  exchange: Exchange,
  head: RequestHead,
  target: RequestTarget,
  responseTimeout: number,
): Promise<void> {
  const { client, life, route } = exchange;
  const framing = framingOf(head);
  const socket = await dial(target.host, target.port, route, life);
  const request = httpRequest({
    createConnection: () => socket,
    method: head.method,
    path: target.path,
    headers: requestHeaders(head, target, framing) as unknown as Record<string, string>,
    maxHeaderSize: MAX_HEAD_BYTES,
  });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    const fail = (reason: string): void =>
      reject(new Refusal(502, `${hostInUrl(target.host)}:${target.port} did not answer: ${reason}`));
    request.once("response", resolve);
    request.on("error", (error: NodeJS.ErrnoException) => fail(error.code ?? "unknown"));
    request.once("close", () => fail("it closed the connection"));
    request.once("upgrade", (_response, upgraded) => {
      upgraded.destroy();
      fail("it changed the protocol unasked");
    });
  });
  answered.catch(() => undefined); // the body may fail first
  request.on("continue", () => {
    client.write(Buffer.from("HTTP/1.1 100 Continue\r\n\r\n")).catch(() => undefined);
  });
  request.flushHeaders();
  const sent = sendBody(exchange, framing, request);
  const late = (): Error => new Refusal(504, `${hostInUrl(target.host)}:${target.port} did not answer in time`);
  // An origin may answer before it has read everything; a malformed body ends the exchange.
  const first = await Promise.race([life.within(answered, responseTimeout, late), sent.then(() => undefined)]);
  const response = first ?? (await life.within(answered, responseTimeout, late));
  sent.catch(() => life.end());
  await sendResponse(client, head, response);
}

function requestHeaders(head: RequestHead, { host, port }: RequestTarget, framing: Framing): string[] {
  const kept = withoutHopByHop(head.headers).filter(([name]) => !/^(?:host|content-length)$/i.test(name));
  const authority = port === 80 ? hostInUrl(host) : `${hostInUrl(host)}:${port}`;
  const headers = [["Host", authority], ...kept, ["Connection", "close"]];
  if (framing === "chunked") headers.push(["Transfer-Encoding", "chunked"]);
  else if (framing > 0 || !BODILESS.includes(head.method)) headers.push(["Content-Length", `${framing}`]);
  return headers.flat();
}

/** Fails when the program's body is malformed. When an origin stops reading, its answer says why. */
async function sendBody({ client, life }: Exchange, framing: Framing, request: ClientRequest): Promise<void> {
  for await (const piece of readBody(client, framing)) {
    const isTaken = await life.during(
      new Promise<boolean>((resolve) => {
        request.write(piece, (error) => resolve(!error));
      }),
    );
    if (!isTaken) return;
  }
  request.end();
}

async function sendResponse(client: ClientStream, head: RequestHead, response: IncomingMessage): Promise<void> {
  const { statusCode = 502, statusMessage = "", rawHeaders } = response;
  const received = rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? ""] as const] : [],
  );
  const headers = withoutHopByHop(received);
  const hasBody = head.method !== "HEAD" && statusCode !== 204 && statusCode !== 304;
  const isChunked =
    hasBody && head.version === "1.1" && !headers.some(([name]) => name.toLowerCase() === "content-length");
  if (isChunked) headers.push(["Transfer-Encoding", "chunked"]);
  headers.push(["Connection", "close"]);
  const lines = [`HTTP/1.1 ${statusCode} ${statusMessage}`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  await client.write(Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"));
  for await (const piece of response) await client.write(isChunked ? toChunk(piece as Buffer) : (piece as Buffer));
  if (isChunked) await client.write(Buffer.from("0\r\n\r\n"));
}

function toChunk(piece: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n")]);
}
