import type { TLSSocket } from "node:tls";

export const DATA = 0;
export const HEADERS = 1;
export const RST_STREAM = 3;
export const SETTINGS = 4;
export const PING = 6;
export const GOAWAY = 7;
export const CONTINUATION = 9;
export const END_STREAM = 1;
export const END_HEADERS = 4;

/** What a client of HTTP/2 says first. */
export const PREFACE: Buffer = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** A frame as it came. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** Writes a frame, whether or not HTTP/2 allows it. */
export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Headers in the plainest form: literal names and values, which no table remembers. */
export function block(headers: readonly (readonly [name: string, value: string])[]): Buffer {
  const text = (value: string): Buffer => Buffer.concat([integer(value.length), Buffer.from(value, "latin1")]);
  return Buffer.concat(headers.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

function integer(value: number): Buffer {
  if (value < 127) return Buffer.from([value]);
  const bytes = [127];
  let rest = value - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

/** Reads frames until the other side closes, or one is the last that is wanted. */
export async function readFrames(socket: TLSSocket, isLast: (frame: Frame) => boolean): Promise<Frame[]> {
  const frames: Frame[] = [];
  let held: Buffer = Buffer.alloc(0);
  const over = new Promise<void>((resolve) => {
    socket.once("close", resolve).once("end", resolve);
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      held = Buffer.concat([held, chunk]);
      while (held.length >= 9 && held.length >= 9 + held.readUIntBE(0, 3)) {
        const length = held.readUIntBE(0, 3);
        const found = {
          type: held.readUInt8(3),
          flags: held.readUInt8(4),
          stream: held.readUInt32BE(5) & 0x7fffffff,
          payload: held.subarray(9, 9 + length),
        };
        held = held.subarray(9 + length);
        frames.push(found);
        if (isLast(found)) resolve();
      }
    });
  });
  await over;
  return frames;
}

/** Writes, however much, until all is taken or the other side has closed. */
export async function pour(socket: TLSSocket, pieces: Iterable<Buffer>): Promise<void> {
  let goOn = (): void => undefined;
  socket.on("drain", () => goOn()).on("close", () => goOn());
  for (const piece of pieces) {
    if (socket.destroyed) return;
    const drained = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    if (!socket.write(piece)) await drained;
  }
}
