import { Readable } from "node:stream";
import type { ClientStream } from "./client-stream.js";
import { Refusal } from "./refusal.js";
import { headerValues, MAX_HEAD_BYTES, type RequestHead } from "./request-head.js";

/** How to find the end of a body: after this many bytes, or by its chunks. */
export type Framing = number | "chunked";

const MAX_LINE = 1024;

/** The framing of a request's body; a `Refusal` when it is ambiguous. */
export function framingOf(head: RequestHead): Framing {
  // Servers that don't tell `_` from `-` would find the end of the body elsewhere.
  if (head.headers.some(([name]) => /^(?:content_length|transfer_encoding)$/i.test(name))) {
    throw new Refusal(400, "a header looks like Content-Length or Transfer-Encoding, and is neither");
  }
  const lengths = headerValues(head, "content-length");
  const codings = headerValues(head, "transfer-encoding");
  if (codings.length > 0) {
    if (lengths.length > 0) throw new Refusal(400, "the request has a Content-Length and a Transfer-Encoding");
    if (codings.length > 1 || codings[0]?.toLowerCase() !== "chunked" || head.version === "1.0") {
      throw new Refusal(400, "the only transfer coding of a request is chunked");
    }
    return "chunked";
  }
  const [length = "0"] = lengths;
  if (lengths.length > 1 || !/^\d{1,15}$/.test(length)) throw new Refusal(400, "the Content-Length is malformed");
  return Number(length);
}

/** The body of a request on its way, which may be read before it is sent. */
export class OutgoingBody {
  /** How the program framed it. It is sent in the same way, unless it changes. */
  readonly framing: Framing;
  readonly #pieces: AsyncIterable<Buffer>;
  readonly #invite: () => Promise<void>;
  #held: Buffer | undefined;

  /** `invite` asks a program for the body that waits for a word before it sends one. */
  constructor(pieces: AsyncIterable<Buffer>, framing: Framing, invite: () => Promise<void>) {
    this.framing = framing;
    this.#pieces = pieces;
    this.#invite = invite;
  }

  /** Whether it was read, so that the program waits for nothing any more. */
  get isHeld(): boolean {
    return this.#held !== undefined;
  }

  /** Reads all of it. More than `most` bytes are a `Refusal`. */
  async whole(most: number): Promise<Buffer> {
    if (this.#held !== undefined) return this.#held;
    await this.#invite();
    const pieces: Buffer[] = [];
    let length = 0;
    for await (const piece of this.#pieces) {
      length += piece.length;
      if (length > most)
        throw new Refusal(413, `the proxy must read this body first, and it has more than ${most} bytes`);
      pieces.push(piece);
    }
    this.#held = Buffer.concat(pieces);
    return this.#held;
  }

  /** What is to be sent, once. */
  pieces(): AsyncIterable<Buffer> {
    return this.#held === undefined ? this.#pieces : Readable.from([this.#held]);
  }
}

/** Yields the body of a request without its framing, and leaves what follows unread. */
export async function* readBody(client: ClientStream, framing: Framing): AsyncGenerator<Buffer> {
  if (framing !== "chunked") {
    yield* take(client, framing);
    return;
  }
  for (;;) {
    const size = await readLine(client);
    if (!/^[0-9A-Fa-f]{1,12}$/.test(size)) throw new Refusal(400, "the size of a chunk is malformed");
    const length = Number.parseInt(size, 16);
    if (length === 0) break;
    yield* take(client, length);
    if ((await readLine(client)) !== "") throw new Refusal(400, "a chunk does not end where it says");
  }
  for (let trailer = 0; ; ) {
    const line = await readLine(client);
    if (line === "") return;
    trailer += line.length;
    if (trailer > MAX_HEAD_BYTES) throw new Refusal(431, "the trailer of the request is too long");
  }
}

async function* take(client: ClientStream, count: number): AsyncGenerator<Buffer> {
  for (let left = count; left > 0; ) {
    const chunk = await some(client);
    const piece = chunk.subarray(0, left);
    client.unread(chunk.subarray(piece.length));
    left -= piece.length;
    yield piece;
  }
}

async function readLine(client: ClientStream): Promise<string> {
  let line: Buffer | undefined;
  for (;;) {
    const chunk = await some(client);
    line = line === undefined ? chunk : Buffer.concat([line, chunk]);
    const end = line.indexOf(0x0a);
    if (end === -1 && line.length <= MAX_LINE) continue;
    if (end === -1 || end > MAX_LINE || line[end - 1] !== 0x0d) throw new Refusal(400, "a chunk is malformed");
    client.unread(line.subarray(end + 1));
    return line.toString("latin1", 0, end - 1);
  }
}

async function some(client: ClientStream): Promise<Buffer> {
  const chunk = await client.read();
  if (chunk === undefined) throw new Refusal(400, "the body of the request ends before its end");
  return chunk;
}
