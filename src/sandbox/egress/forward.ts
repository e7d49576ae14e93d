import {
  type Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
  STATUS_CODES,
} from "node:http";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import type { ClientStream } from "./client-stream.js";
import { withoutHopByHop } from "./hop-by-hop.js";
import { hostInUrl } from "./host-name.js";
import type { Lifetime } from "./lifetime.js";
import { Refusal } from "./refusal.js";
import { type Framing, framingOf, OutgoingBody, readBody } from "./request-body.js";
import { headerValues, MAX_HEAD_BYTES, type RequestHead } from "./request-head.js";
import type { RequestTarget } from "./request-target.js";
import { type Exchange, sendDown, sendUp } from "./tunnel.js";

/** Methods without a body by default. */
const BODILESS = ["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"];

/** Bytes of a body that is read before it is sent, where its length changes. */
const MOST_READ = 64 * 1024;

type Header = readonly [name: string, value: string];

/** How a request gets to its origin, and what changes on the way. */
export interface Passage {
  /** Makes a connection to its origin, or keeps one for the requests to come. */
  via: { dial(): Promise<Socket> } | { agent: Agent };
  /** The port that the Host header leaves out. */
  usualPort: 80 | 443;
  /** Milliseconds to the head of the answer. */
  timeout: number;
  /** The same, for a program that has ended its half: most of those have gone away. */
  patience: number;
  changes?: Rewriting;
}

/** A request, as it will be sent: without the headers about its connection and the framing of its body. */
interface OutgoingHead {
  path: string;
  headers: Header[];
}

/** What becomes of a request. The body is that of the program, unless it is rewritten on its way or there are bytes in its place. */
export interface ChangedRequest extends OutgoingHead {
  body?: Rewrite;
  bytes?: Buffer;
}

/** What is put into requests, and taken out of answers. */
export interface Rewriting {
  ofRequest(request: OutgoingHead, body?: OutgoingBody): Promise<ChangedRequest>;
  ofHeaders(headers: Header[]): Header[];
  /** Undefined: the body passes as it is. */
  ofBody(headers: readonly Header[]): Rewrite | undefined;
  /** What a WebSocket brings. Absent: it passes as it is. */
  ofFrames?(): Rewrite | undefined;
  /** The exchange is over, whatever became of it. */
  ended?(): void;
}

/** Rewriting a body on its way, and perhaps its length. */
type Rewrite = (pieces: AsyncIterable<Buffer>) => AsyncIterable<Buffer>;

/** The first thing that comes back for a request. */
interface Answer {
  response: IncomingMessage;
  /** For a change of protocol: the connection from now on, and its first bytes. */
  upgraded?: { socket: Socket; first: Buffer };
}

/** Forwards one request to its origin and the answer back. Gives whether another one may follow on the same connection. */
export async function forward(
  exchange: Exchange,
  head: RequestHead,
  target: RequestTarget,
  passage: Passage,
): Promise<boolean> {
  try {
    return await pass(exchange, head, target, passage);
  } finally {
    passage.changes?.ended?.();
  }
}

async function pass(exchange: Exchange, head: RequestHead, target: RequestTarget, passage: Passage): Promise<boolean> {
  const { life } = exchange;
  const isUpgrade = "agent" in passage.via && asksForWebSocket(head);
  const headers = requestHeaders(head, target, passage.usualPort);
  const framing = framingOf(head);
  const body = new OutgoingBody(readBody(exchange.client, framing), framing, async () => {
    if (expectsContinue(head)) await exchange.client.write(CONTINUE);
  });
  const { path } = target;
  const unchanged = async (): Promise<ChangedRequest> => ({ path, headers });
  const changed = await life.during(passage.changes?.ofRequest({ path, headers }, body) ?? unchanged());
  const { pieces, sentFraming } = await bodyOf(head, body, changed);
  const own = [...connectionHeaders(passage, isUpgrade), ...framingHeaders(head.method, sentFraming)];
  const request = httpRequest({
    ...(await connectionOptions(passage.via, target)),
    method: head.method,
    path: changed.path,
    headers: [...(body.isHeld ? withoutExpect(changed.headers) : changed.headers), ...own].flat() as unknown as Record<
      string,
      string
    >,
    maxHeaderSize: MAX_HEAD_BYTES,
  });
  const answered = waitForAnswer(request, target, isUpgrade);
  answered.catch(() => undefined); // the body may fail first
  request.on("continue", () => {
    exchange.client.write(CONTINUE).catch(() => undefined);
  });
  request.flushHeaders();
  let isSent = false;
  const sent = sendBody(life, pieces, request).then(() => {
    isSent = true;
  });
  const late = (): Error => new Refusal(504, `${hostInUrl(target.host)}:${target.port} did not answer in time`);
  // An origin may answer before it has read everything; a malformed body ends the exchange.
  const first = await Promise.race([life.within(answered, passage.timeout, late), sent.then(() => undefined)]);
  const waiting = (): Promise<Answer> => life.within(answered, passage.timeout, late);
  const answer = first ?? (await Promise.race([waiting(), abandoned(exchange, answered, passage.patience)]));
  sent.catch(() => life.end());
  if (answer.upgraded !== undefined) {
    await switchProtocol(exchange, answer.response, answer.upgraded, passage);
    return false;
  }
  const staysOpen = "agent" in passage.via && isSent && head.version === "1.1" && !asksToClose(head);
  await sendResponse(exchange.client, head, answer.response, { staysOpen, changes: passage.changes });
  return staysOpen;
}

/** Fails for a program that ends its half, and then gets no answer for too long. */
async function abandoned({ client, life }: Exchange, answered: Promise<Answer>, patience: number): Promise<Answer> {
  const gone = (): Error => new Error("the program has gone away");
  const isOver = await Promise.race([client.ended(), answered.then(() => false)]);
  return isOver ? await life.within(answered, patience, gone) : await answered;
}

const CONTINUE = Buffer.from("HTTP/1.1 100 Continue\r\n\r\n");

function expectsContinue(head: RequestHead): boolean {
  return headerValues(head, "expect").some((value) => /^100-continue$/i.test(value));
}

function withoutExpect(headers: readonly Header[]): Header[] {
  return headers.filter(([name]) => name.toLowerCase() !== "expect");
}

/**
 * The body as it is sent. One that changes on the way has another length then, which is known in advance only when it was read; larger ones go in
 * chunks, and so do those that the program sends only when it is told to go on.
 */
async function bodyOf(
  head: RequestHead,
  body: OutgoingBody,
  { body: rewrite, bytes }: ChangedRequest,
): Promise<{ pieces: AsyncIterable<Buffer>; sentFraming: Framing }> {
  const { framing } = body;
  if (bytes !== undefined) return { pieces: Readable.from([bytes]), sentFraming: bytes.length };
  if (rewrite === undefined || framing === 0) return { pieces: body.pieces(), sentFraming: framing };
  const isSmall = framing !== "chunked" && framing <= MOST_READ && headerValues(head, "expect").length === 0;
  if (!isSmall) return { pieces: rewrite(body.pieces()), sentFraming: "chunked" };
  const pieces: Buffer[] = [];
  for await (const piece of rewrite(body.pieces())) pieces.push(piece);
  return { pieces: Readable.from(pieces), sentFraming: pieces.reduce((sum, { length }) => sum + length, 0) };
}

async function connectionOptions(via: Passage["via"], { host, port }: RequestTarget): Promise<RequestOptions> {
  if ("agent" in via) return { agent: via.agent, host, port };
  const socket = await via.dial();
  return { createConnection: () => socket };
}

async function waitForAnswer(request: ClientRequest, target: RequestTarget, isUpgrade: boolean): Promise<Answer> {
  return await new Promise<Answer>((resolve, reject) => {
    const fail = (reason: string): void =>
      reject(new Refusal(502, `${hostInUrl(target.host)}:${target.port} did not answer: ${reason}`));
    request.once("response", (response) => resolve({ response }));
    request.on("error", (error: NodeJS.ErrnoException) =>
      error instanceof Refusal ? reject(error) : fail(error.code ?? "unknown"),
    );
    request.once("close", () => fail("it closed the connection"));
    request.once("upgrade", (response, socket: Socket, first) => {
      const isAsked = isUpgrade && response.statusCode === 101 && /^websocket$/i.test(response.headers.upgrade ?? "");
      if (isAsked) return resolve({ response, upgraded: { socket, first } });
      socket.destroy();
      return fail("it changed the protocol unasked");
    });
  });
}

/** A browser's socket is the only protocol that a request may change to. */
function asksForWebSocket(head: RequestHead): boolean {
  const [wanted, ...more] = headerValues(head, "upgrade");
  const isNamed = headerValues(head, "connection").some((value) => /(?:^|,)\s*upgrade\s*(?:,|$)/i.test(value));
  return more.length === 0 && isNamed && /^websocket$/i.test(wanted ?? "") && head.method === "GET";
}

function asksToClose(head: RequestHead): boolean {
  return headerValues(head, "connection").some((value) => /(?:^|,)\s*close\s*(?:,|$)/i.test(value));
}

/** The headers of a request as its origin gets them: those of the program, but for what is about its connection, with a Host that names the target. */
export function requestHeaders(head: RequestHead, { host, port }: RequestTarget, usualPort: number): Header[] {
  const kept = withoutHopByHop(head.headers).filter(([name]) => !/^(?:host|content-length)$/i.test(name));
  return [["Host", port === usualPort ? hostInUrl(host) : `${hostInUrl(host)}:${port}`], ...kept];
}

function connectionHeaders(passage: Passage, isUpgrade: boolean): Header[] {
  if (!("agent" in passage.via)) return [["Connection", "close"]];
  return isUpgrade ? UPGRADE : [];
}

const UPGRADE: Header[] = [
  ["Connection", "Upgrade"],
  ["Upgrade", "websocket"],
];

function framingHeaders(method: string, framing: Framing): Header[] {
  if (framing === "chunked") return [["Transfer-Encoding", "chunked"]];
  return framing > 0 || !BODILESS.includes(method) ? [["Content-Length", `${framing}`]] : [];
}

/** From now on the bytes of the program pass as they are, and those of the origin but for what is taken out of answers. */
async function switchProtocol(
  exchange: Exchange,
  response: IncomingMessage,
  { socket, first }: { socket: Socket; first: Buffer },
  { changes }: Passage,
): Promise<void> {
  const { client, life } = exchange;
  life.onEnd(() => socket.destroy());
  socket.on("error", () => undefined); // the next read or write fails
  const headers = receivedHeaders(response);
  await client.write(responseHead(response, [...(changes?.ofHeaders(headers) ?? headers), ...UPGRADE], changes));
  if (first.length > 0) socket.unshift(first);
  await Promise.all([sendUp(exchange, socket, Buffer.alloc(0)), sendDown(exchange, socket, changes?.ofFrames?.())]);
}

/** Fails when the program's body is malformed. When an origin stops reading, its answer says why. */
async function sendBody(life: Lifetime, body: AsyncIterable<Buffer>, request: ClientRequest): Promise<void> {
  for await (const piece of body) {
    const isTaken = await life.during(
      new Promise<boolean>((resolve) => {
        request.write(piece, (error) => resolve(!error));
      }),
    );
    if (!isTaken) return;
  }
  request.end();
}

async function sendResponse(
  client: ClientStream,
  head: RequestHead,
  response: IncomingMessage,
  { staysOpen, changes }: { staysOpen: boolean; changes: Rewriting | undefined },
): Promise<void> {
  const { statusCode = 502 } = response;
  const received = receivedHeaders(response);
  const hasBody = head.method !== "HEAD" && statusCode !== 204 && statusCode !== 304;
  const rewrite = hasBody ? changes?.ofBody(received) : undefined;
  const masked = changes?.ofHeaders(received) ?? received;
  const headers = rewrite ? masked.filter(([name]) => name.toLowerCase() !== "content-length") : masked;
  const isChunked =
    hasBody && head.version === "1.1" && !headers.some(([name]) => name.toLowerCase() === "content-length");
  if (isChunked) headers.push(["Transfer-Encoding", "chunked"]);
  if (!staysOpen) headers.push(["Connection", "close"]);
  await client.write(responseHead(response, headers, changes));
  const pieces: AsyncIterable<Buffer> = response;
  for await (const piece of rewrite?.(pieces) ?? pieces) await client.write(isChunked ? toChunk(piece) : piece);
  if (isChunked) await client.write(Buffer.from("0\r\n\r\n"));
}

function receivedHeaders({ rawHeaders }: IncomingMessage): Header[] {
  const received = rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? ""] as const] : [],
  );
  return withoutHopByHop(received);
}

/** Where something is taken out of answers, the words behind the status are the usual ones. */
function responseHead(
  { statusCode = 502, statusMessage = "" }: IncomingMessage,
  headers: readonly Header[],
  changes: Rewriting | undefined,
): Buffer {
  const words = changes === undefined ? statusMessage : (STATUS_CODES[statusCode] ?? "");
  const lines = [`HTTP/1.1 ${statusCode} ${words}`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}

function toChunk(piece: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n")]);
}
