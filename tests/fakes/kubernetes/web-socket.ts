import { createHash } from "node:crypto";
import type { Duplex } from "node:stream";

const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/** What golang.org/x/net/websocket takes in one message. */
const MOST = 32 << 20;

/** The server's end of a WebSocket. */
export interface Peer {
  onMessage: (message: Buffer) => void;
  /** The connection has ended, in whatever way. */
  onEnd: () => void;
  /** A message was longer than the server takes. */
  onTooLong: () => void;
  /** Whether there is room for more; `onRoom` says when there is again. */
  send(message: Buffer): boolean;
  onRoom: () => void;
  /** Ends it with a close frame. */
  close(code: number): void;
  /** Ends it without a word. */
  drop(): void;
}

/** Answers an upgrade. */
export function acceptUpgrade(socket: Duplex, key: string, protocol: string, head: Buffer): Peer {
  const accept = createHash("sha1")
    .update(key + MAGIC)
    .digest("base64");
  socket.write(
    [
      "HTTP/1.1 101 Switching Protocols",
      "Upgrade: websocket",
      "Connection: Upgrade",
      `Sec-WebSocket-Accept: ${accept}`,
      `Sec-WebSocket-Protocol: ${protocol}`,
      "",
      "",
    ].join("\r\n"),
  );
  const peer: Peer = {
    onMessage: () => undefined,
    onEnd: () => undefined,
    onTooLong: () => undefined,
    onRoom: () => undefined,
    send: (message) => socket.destroyed || write(2, message),
    close(code) {
      const body = Buffer.alloc(2);
      body.writeUInt16BE(code);
      if (!socket.destroyed) socket.end(Buffer.concat([header(8, 2), body]));
    },
    drop: () => void socket.destroy(),
  };
  const write = (opcode: number, body: Buffer): boolean => {
    socket.write(header(opcode, body.length));
    return socket.write(body);
  };
  let pieces: Buffer[] = [];
  let held = 0;
  let message: Buffer[] = [];
  let messageLength = 0;
  socket.on("drain", () => peer.onRoom());
  socket.on("error", () => undefined);
  socket.on("close", () => peer.onEnd());
  socket.on("end", () => socket.end());
  socket.on("data", read);
  if (head.length > 0) read(head);

  function read(chunk: Buffer): void {
    pieces.push(chunk);
    held += chunk.length;
    for (let frame = next(); frame !== undefined; frame = next()) handle(frame);
  }

  function next(): Frame | undefined {
    const first = pieces[0];
    if (first === undefined || held < 2) return undefined;
    let start = pieces.length > 1 && first.length < 14 ? join() : first;
    const size = frameSize(start);
    if (size === undefined || held < size.whole) return undefined;
    // Clients must mask, and must not use the bits of extensions.
    if (((start[1] ?? 0) & 0x80) === 0 || ((start[0] ?? 0) & 0x70) !== 0) {
      socket.destroy();
      return undefined;
    }
    start = join();
    const mask = start.subarray(size.head - 4, size.head);
    const body = Buffer.from(start.subarray(size.head, size.whole));
    for (let i = 0; i < body.length; i++) body[i] = (body[i] ?? 0) ^ (mask[i & 3] ?? 0);
    const rest = start.subarray(size.whole);
    pieces = rest.length > 0 ? [rest] : [];
    held = rest.length;
    return { opcode: (start[0] ?? 0) & 15, isLast: ((start[0] ?? 0) & 0x80) !== 0, body };
  }

  function join(): Buffer {
    const whole = Buffer.concat(pieces);
    pieces = [whole];
    return whole;
  }

  function handle({ opcode, isLast, body }: Frame): void {
    if (opcode === 9) write(10, body);
    else if (opcode === 8) {
      if (!socket.destroyed) socket.end(Buffer.concat([header(8, body.length), body]));
    } else if (opcode <= 2) {
      message.push(body);
      messageLength += body.length;
      if (messageLength > MOST) {
        peer.onTooLong();
        return;
      }
      if (!isLast) return;
      const whole = Buffer.concat(message);
      message = [];
      messageLength = 0;
      if (whole.length > 0) peer.onMessage(whole);
    }
  }

  return peer;
}

interface Frame {
  readonly opcode: number;
  readonly isLast: boolean;
  readonly body: Buffer;
}

/** The length of a client's frame: of what is before its bytes, and of all. */
function frameSize(start: Buffer): { head: number; whole: number } | undefined {
  const short = (start[1] ?? 0) & 0x7f;
  const head = (short === 127 ? 10 : short === 126 ? 4 : 2) + 4;
  if (start.length < head) return undefined;
  const length = short === 127 ? Number(start.readBigUInt64BE(2)) : short === 126 ? start.readUInt16BE(2) : short;
  return { head, whole: head + length };
}

function header(opcode: number, length: number): Buffer {
  const bytes = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  bytes[0] = 0x80 | opcode;
  bytes[1] = length < 126 ? length : length < 65_536 ? 126 : 127;
  if (bytes.length === 4) bytes.writeUInt16BE(length, 2);
  if (bytes.length === 10) bytes.writeBigUInt64BE(BigInt(length), 2);
  return bytes;
}
