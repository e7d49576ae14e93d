import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** The server's end of one WebSocket: enough of RFC 6455 for what the service says. */
export interface WebSocketPeer {
  onText: ((text: string) => void) | undefined;
  onClose: (() => void) | undefined;
  send(data: string | Uint8Array): void;
  /** Says goodbye with a code. */
  close(code: number): void;
  /** Is gone without a word. */
  drop(): void;
}

/** Takes an upgrade. One of the offered subprotocols is echoed, as clients demand. */
export function acceptWebSocket(request: IncomingMessage, socket: Duplex): WebSocketPeer {
  const key = request.headers["sec-websocket-key"] ?? "";
  const [protocol] = (request.headers["sec-websocket-protocol"] ?? "").split(",");
  const lines = [
    "HTTP/1.1 101 Switching Protocols",
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Accept: ${createHash("sha1")
      .update(key + MAGIC)
      .digest("base64")}`,
    ...(protocol ? [`Sec-WebSocket-Protocol: ${protocol.trim()}`] : []),
  ];
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  let held = Buffer.alloc(0);
  const peer: WebSocketPeer = {
    onText: undefined,
    onClose: undefined,
    send: (data) => {
      if (!socket.destroyed) socket.write(frame(typeof data === "string" ? 1 : 2, Buffer.from(data)));
    },
    close: (code) => {
      const body = Buffer.alloc(2);
      body.writeUInt16BE(code);
      if (!socket.destroyed) socket.end(frame(8, body));
    },
    drop: () => socket.destroy(),
  };
  socket.on("error", () => undefined);
  socket.on("close", () => peer.onClose?.());
  socket.on("data", (chunk: Buffer) => {
    held = Buffer.concat([held, chunk]);
    for (let read = unframe(held); read !== undefined; read = unframe(held)) {
      held = held.subarray(read.length);
      if (read.type === 1) peer.onText?.(read.body.toString("utf8"));
      if (read.type === 9) socket.write(frame(10, read.body));
      if (read.type === 8) socket.end(frame(8, read.body));
    }
  });
  return peer;
}

function frame(type: number, body: Buffer): Buffer {
  const head = body.length < 126 ? Buffer.alloc(2) : Buffer.alloc(body.length < 65_536 ? 4 : 10);
  head[0] = 0x80 | type;
  if (head.length === 2) head[1] = body.length;
  else if (head.length === 4) {
    head[1] = 126;
    head.writeUInt16BE(body.length, 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(body.length), 2);
  }
  return Buffer.concat([head, body]);
}

/** The first whole frame of a client, unmasked. */
function unframe(held: Buffer): { type: number; body: Buffer; length: number } | undefined {
  if (held.length < 2) return undefined;
  const short = (held[1] ?? 0) & 0x7f;
  const start = short === 127 ? 10 : short === 126 ? 4 : 2;
  if (held.length < start + 4) return undefined;
  const size = short === 127 ? Number(held.readBigUInt64BE(2)) : short === 126 ? held.readUInt16BE(2) : short;
  if (held.length < start + 4 + size) return undefined;
  const mask = held.subarray(start, start + 4);
  const body = Buffer.from(held.subarray(start + 4, start + 4 + size));
  for (let i = 0; i < body.length; i++) body[i] = (body[i] ?? 0) ^ (mask[i % 4] ?? 0);
  return { type: (held[0] ?? 0) & 0x0f, body, length: start + 4 + size };
}
