import { type ClientHttp2Stream, constants, type ServerHttp2Stream } from "node:http2";
import { type ChangedRequest, type Rewriting, requestHeaders } from "../../forward.js";
import { hostInUrl } from "../../host-name.js";
import type { Lifetime } from "../../lifetime.js";
import { Refusal } from "../../refusal.js";
import { OutgoingBody } from "../../request-body.js";
import { headerValues, type RequestHead } from "../../request-head.js";
import type { RequestTarget } from "../../request-target.js";
import type { OriginSession } from "./origin-session.js";
import { pairsOf, receivedFrom, toRecord, toStreamHead } from "./stream-head.js";

const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR, NGHTTP2_FLAG_END_STREAM } = constants;

type Header = readonly [name: string, value: string];

/** What is needed to forward one request of a program's HTTP/2 connection. */
export interface StreamPassage {
  readonly life: Lifetime;
  readonly origin: OriginSession;
  /** Milliseconds to the head of the answer. */
  readonly timeout: number;
  /** Milliseconds for a program that goes on sending after the answer. */
  readonly linger: number;
  readonly changes: Rewriting | undefined;
}

/** The head of an answer. */
interface Answer {
  readonly list: readonly string[];
  readonly isWhole: boolean;
}

/** Forwards one request to its origin and the answer back, with its trailer. May throw a `Refusal` before the answer has begun. */
export async function forwardStream(
  stream: ServerHttp2Stream,
  head: RequestHead,
  target: RequestTarget,
  passage: StreamPassage,
): Promise<void> {
  let outgoing: ClientHttp2Stream | undefined;
  const cancel = (): void => outgoing && breakOff(outgoing);
  stream.once("close", cancel);
  try {
    const body = bodyOf(stream, head);
    const sent = await changedRequest(head, target, body, passage);
    const session = await passage.life.during(passage.origin.open());
    if (stream.closed || stream.destroyed) return;
    outgoing = start(session, sent);
    // Once: a host that says it again and again would fill the memory with what the program does not read.
    outgoing.once("continue", () => sayContinue(stream));
    const answered = waitForAnswer(outgoing, target);
    answered.catch(() => undefined); // the body may fail first
    const sending = sendBody(sent.pieces, outgoing);
    const late = (): Error => new Refusal(504, `${hostInUrl(target.host)}:${target.port} did not answer in time`);
    const waiting = passage.life.within(answered, passage.timeout, late);
    const answer = (await Promise.race([waiting, sending.then(() => undefined)])) ?? (await waiting);
    sending.catch(() => breakOff(stream));
    await sendAnswer(stream, head, answer, outgoing, passage.changes);
    endLater(stream, passage.linger);
  } finally {
    cancel();
    passage.changes?.ended?.();
  }
}

/** Ends a stream before its end. Node would close the half that still sends first, so that the other side took it for whole. */
export function breakOff(stream: ClientHttp2Stream | ServerHttp2Stream): void {
  if (stream.writableFinished) stream.close(NGHTTP2_CANCEL);
  else stream.destroy(new Error("the stream was broken off"));
}

/** Ends a stream after its answer, if its program goes on sending. At once, that would overtake the end of the answer. */
export function endLater(stream: ServerHttp2Stream, linger: number): void {
  if (stream.endAfterHeaders || stream.readableEnded) return;
  const timer = setTimeout(() => stream.close(NGHTTP2_NO_ERROR), linger);
  timer.unref();
  stream.once("close", () => clearTimeout(timer));
}

function bodyOf(stream: ServerHttp2Stream, head: RequestHead): OutgoingBody {
  const [length] = headerValues(head, "content-length");
  // Node has compared it with what comes.
  const framing = stream.endAfterHeaders ? 0 : length === undefined ? "chunked" : Number(length);
  return new OutgoingBody(piecesOf(stream), framing, async () => {
    if (headerValues(head, "expect").length > 0) sayContinue(stream);
  });
}

/** Yields what a stream brings. It fails where the other side broke it off, which Node ends like a whole one. */
async function* piecesOf(stream: ClientHttp2Stream | ServerHttp2Stream): AsyncGenerator<Buffer> {
  // A plain loop destroys the half that still sends.
  for await (const piece of stream.iterator({ destroyOnReturn: false })) yield piece as Buffer;
  if (stream.aborted || (stream.rstCode ?? 0) !== NGHTTP2_NO_ERROR) throw new Error("the stream was broken off");
}

function sayContinue(stream: ServerHttp2Stream): void {
  if (!stream.headersSent && !stream.closed && !stream.destroyed) stream.additionalHeaders({ ":status": 100 });
}

interface SentRequest {
  readonly headers: ReturnType<typeof toStreamHead>;
  readonly pieces: AsyncIterable<Buffer> | undefined;
}

async function changedRequest(
  head: RequestHead,
  target: RequestTarget,
  body: OutgoingBody,
  { life, changes }: StreamPassage,
): Promise<SentRequest> {
  const { method } = head;
  const { framing } = body;
  const request: ChangedRequest = { path: target.path, headers: requestHeaders(head, target, 443) };
  const changed = changes === undefined ? request : await life.during(changes.ofRequest(request, body));
  const { bytes, body: rewrite } = changed;
  // Servers of gRPC want to be told that a trailer arrives.
  const takesTrailers = headerValues(head, "te").some((value) => value.toLowerCase() === "trailers");
  const kept = changed.headers.filter(([name]) => !body.isHeld || name.toLowerCase() !== "expect");
  const headers = [...kept, ...(takesTrailers ? [["te", "trailers"] as const] : [])];
  const outgoing = { method, path: changed.path, headers };
  if (bytes !== undefined) return { headers: toStreamHead(outgoing, bytes.length), pieces: only(bytes) };
  if (framing === 0) return { headers: toStreamHead(outgoing, 0), pieces: undefined };
  if (rewrite === undefined) return { headers: toStreamHead(outgoing, framing), pieces: body.pieces() };
  return { headers: toStreamHead(outgoing, "chunked"), pieces: rewrite(body.pieces()) };
}

async function* only(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

function start(
  session: Awaited<ReturnType<OriginSession["open"]>>,
  { headers, pieces }: SentRequest,
): ClientHttp2Stream {
  try {
    return session.request(headers, { endStream: pieces === undefined }).on("error", () => undefined);
  } catch (error) {
    const { code = "unknown" } = error as NodeJS.ErrnoException;
    if (/SESSION|STREAM/.test(code)) throw new Refusal(502, `the connection to the host is over: ${code}`);
    throw new Refusal(400, `the headers of the request can't be sent: ${code}`);
  }
}

async function waitForAnswer(outgoing: ClientHttp2Stream, { host, port }: RequestTarget): Promise<Answer> {
  return await new Promise<Answer>((resolve, reject) => {
    const fail = (why: string): void => reject(new Refusal(502, `${hostInUrl(host)}:${port} did not answer: ${why}`));
    outgoing.once("response", (...[, flags, list]: [unknown, number, string[]?]) =>
      resolve({ list: list ?? [], isWhole: (flags & NGHTTP2_FLAG_END_STREAM) !== 0 }),
    );
    outgoing.once("error", (error: NodeJS.ErrnoException) => fail(error.code ?? "unknown"));
    outgoing.once("close", () => fail("it closed the stream"));
  });
}

/** Fails when the program breaks off its body. When an origin stops reading, its answer says why, and the rest is thrown away. */
async function sendBody(pieces: AsyncIterable<Buffer> | undefined, outgoing: ClientHttp2Stream): Promise<void> {
  if (pieces === undefined) return;
  for await (const piece of pieces) await writeTo(outgoing, piece);
  outgoing.end();
}

/** Gives whether it was taken. */
async function writeTo(stream: ClientHttp2Stream | ServerHttp2Stream, piece: Buffer): Promise<boolean> {
  if (stream.destroyed || stream.writableEnded) return false;
  return await new Promise<boolean>((resolve) => {
    const closed = (): void => resolve(false);
    stream.once("close", closed);
    stream.write(piece, (error) => {
      stream.off("close", closed);
      resolve(!error);
    });
  });
}

async function sendAnswer(
  stream: ServerHttp2Stream,
  head: RequestHead,
  { list, isWhole }: Answer,
  outgoing: ClientHttp2Stream,
  changes: Rewriting | undefined,
): Promise<void> {
  const status = Number(pairsOf(list).find(([name]) => name === ":status")?.[1]);
  const received = receivedFrom(list);
  const hasBody = !isWhole && head.method !== "HEAD";
  const rewrite = hasBody ? changes?.ofBody(received) : undefined;
  const masked = changes?.ofHeaders(received) ?? received;
  const headers = rewrite ? masked.filter(([name]) => name !== "content-length") : masked;
  if (stream.closed || stream.destroyed) return;
  const trailer = new Promise<Header[]>((resolve) => {
    outgoing.once("trailers", (...[, , lines]: [unknown, number, string[]?]) => resolve(receivedFrom(lines ?? [])));
    outgoing.once("end", () => setImmediate(resolve, []));
  });
  stream.respond({ ":status": status, ...toRecord(headers) }, { endStream: isWhole, waitForTrailers: !isWhole });
  if (isWhole) return;
  const isOver = new Promise<void>((resolve) => {
    stream.once("close", resolve);
    stream.once("wantTrailers", () => {
      trailer
        .then((lines) => stream.sendTrailers(toRecord(changes?.ofHeaders(lines) ?? lines)))
        // It is closed, or the trailer is one that can't be sent.
        .catch(() => breakOff(stream))
        .finally(resolve);
    });
  });
  const pieces = piecesOf(outgoing);
  for await (const piece of rewrite?.(pieces) ?? pieces) {
    if (!(await writeTo(stream, piece))) return;
  }
  stream.end();
  await isOver;
}
