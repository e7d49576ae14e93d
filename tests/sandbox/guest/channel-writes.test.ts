import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { GuestChannel } from "../../../src/sandbox/guest/channel.js";
import { encodeFrame, REQUEST } from "../../../src/sandbox/guest/frames.js";
import { GuestCall } from "../../../src/sandbox/guest/guest-process.js";

/** A stream that counts how often it is written to, and how many bytes. */
class Counted extends Duplex {
  writes = 0;
  bytes = 0;

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.writes += 1;
    this.bytes += chunk.length;
    done();
  }

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.writes += 1;
    for (const { chunk } of chunks) this.bytes += chunk.length;
    done();
  }

  ref(): void {}
  unref(): void {}
}

function start(count: number): { stream: Counted; channel: GuestChannel } {
  const stream = new Counted();
  const channel = new GuestChannel(stream);
  for (let n = 0; n < count; n++) new GuestCall(channel, REQUEST.start, [Buffer.alloc(100)]);
  return { stream, channel };
}

test("what is sent at once leaves in one write", async () => {
  const { stream, channel } = start(16);
  await Promise.resolve();
  expect(stream.writes).toBe(0);
  await new Promise<void>((resolve) => process.nextTick(resolve));
  expect(stream).toMatchObject({ writes: 1, bytes: 16 * 113 });
  channel.send(REQUEST.signal, 1, [Uint8Array.of(15)]);
  await new Promise<void>((resolve) => process.nextTick(resolve));
  expect(stream).toMatchObject({ writes: 2, bytes: 16 * 113 + 14 });
  channel.close();
});

test("what was sent before the channel is closed still leaves", () => {
  const { stream, channel } = start(3);
  channel.close();
  expect(stream).toMatchObject({ writes: 1, bytes: 3 * 113 });
});

test("a body that is not copied leaves as the same frame, in its turn", async () => {
  const sent: Buffer[] = [];
  class Recorded extends Counted {
    override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
      for (const { chunk } of chunks) sent.push(chunk);
      super._writev(chunks, done);
    }
  }
  const channel = new GuestChannel(new Recorded());
  const body = Buffer.from("whole");
  channel.send(REQUEST.signal, 7, [Uint8Array.of(15)]);
  channel.sendUncopied(REQUEST.stdin, 7, body);
  channel.send(REQUEST.stdin, 7, [body]);
  await new Promise<void>((resolve) => process.nextTick(resolve));
  expect(sent.some((chunk) => chunk.buffer === body.buffer && chunk.byteOffset === body.byteOffset)).toBe(true);
  const frames = [
    encodeFrame(0, REQUEST.signal, 7, [Uint8Array.of(15)]),
    encodeFrame(1, REQUEST.stdin, 7, [body]),
    encodeFrame(2, REQUEST.stdin, 7, [body]),
  ];
  expect(Buffer.concat(sent)).toEqual(Buffer.concat(frames));
  channel.close();
});
