import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** A frame as a client sent it, unmasked. */
export interface ClientFrame {
  readonly opcode: number;
  readonly payload: Buffer;
}

/** The server's end of an exec, whose bytes a test chooses. */
export interface ExecPeer {
  readonly socket: Duplex;
  readonly frames: ClientFrame[];
  /** One message on a channel. */
  say(channel: number, bytes: string | Uint8Array): void;
  /** What the program's end is reported as. */
  exit(code: number): void;
  close(code: number): void;
}

/** Takes an upgrade to an exec. */
export function acceptExec(request: IncomingMessage, socket: Duplex, protocol: string): ExecPeer {
  const key = request.headers["sec-websocket-key"] ?? "";
  const accept = createHash("sha1").update(`${key}${MAGIC}`).digest("base64");
  const head = ["Upgrade: websocket", "Connection: Upgrade", `Sec-WebSocket-Accept: ${accept}`];
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\n${[...head, `Sec-WebSocket-Protocol: ${protocol}`].join("\r\n")}\r\n\r\n`,
  );
  let held = Buffer.alloc(0);
  const frames: ClientFrame[] = [];
  socket.on("data", (chunk: Buffer) => {
    held = Buffer.concat([held, chunk]);
    for (let found = unmask(held); found !== undefined; found = unmask(held)) {
      frames.push(found);
      held = held.subarray(found.size);
    }
  });
  const peer: ExecPeer = {
    socket,
    frames,
    say(channel, bytes) {
      socket.write(serverFrame(2, Buffer.concat([Buffer.from([channel]), Buffer.from(bytes)])));
    },
    exit(code) {
      const causes = [{ reason: "ExitCode", message: String(code) }];
      const failed = { status: "Failure", reason: "NonZeroExitCode", message: "it failed", details: { causes } };
      peer.say(3, JSON.stringify(code === 0 ? { status: "Success" } : failed));
      peer.close(1000);
    },
    close(code) {
      socket.end(serverFrame(8, Buffer.from([code >> 8, code & 255])));
    },
  };
  return peer;
}

/** Encodes a frame of a server. */
export function serverFrame(opcode: number, payload: Uint8Array, isLast = true): Buffer {
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = (isLast ? 0x80 : 0) | opcode;
  head[1] = length < 126 ? length : length < 65_536 ? 126 : 127;
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, payload]);
}

/** The first whole frame of a client; undefined if it is not there yet. */
export function unmask(bytes: Buffer): (ClientFrame & { size: number }) | undefined {
  const [first = 0, second = 0] = bytes;
  if (bytes.length < 2) return undefined;
  if ((second & 0x80) === 0) throw new Error("a client's frame must be masked");
  const short = second & 0x7f;
  const at = short === 127 ? 10 : short === 126 ? 4 : 2;
  if (bytes.length < at + 4) return undefined;
  const length = short === 127 ? Number(bytes.readBigUInt64BE(2)) : short === 126 ? bytes.readUInt16BE(2) : short;
  const size = at + 4 + length;
  if (bytes.length < size) return undefined;
  const mask = bytes.subarray(at, at + 4);
  const payload = Buffer.from(bytes.subarray(at + 4, size)).map((byte, index) => byte ^ (mask[index % 4] ?? 0));
  return { opcode: first & 0x0f, payload: Buffer.from(payload), size };
}
