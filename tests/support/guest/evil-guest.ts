import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GuestChannel } from "../../../src/sandbox/guest/channel.js";
import { ANSWER, BodyWriter, encodeFrame, PROTOCOL_VERSION } from "../../../src/sandbox/guest/frames.js";

/** The far end of a channel, which says whatever a test wants it to. */
export interface EvilGuest {
  readonly channel: GuestChannel;
  /** The reason for which the channel ended. */
  readonly ended: Promise<Error>;
  /** Frames, numbered as they must be. */
  say(type: number, call: number, body?: Uint8Array): void;
  /** Bytes as they are. */
  raw(bytes: Uint8Array): void;
  /** Resolves once the host has sent at least this many bytes in all. */
  heard(bytes: number): Promise<void>;
  close(): Promise<void>;
}

/** The body of an honest greeting. */
export function greeting(version: number = PROTOCOL_VERSION, edition = 1): Uint8Array {
  return Buffer.concat(
    new BodyWriter()
      .u32(version)
      .u8(2 | ((edition - 1) << 4))
      .u8(1).pieces,
  );
}

/** Both ends of a channel on a real socket; it has greeted unless told not to. */
export async function startEvilGuest({
  greets = true,
  edition = 1,
}: {
  greets?: boolean;
  edition?: number;
} = {}): Promise<EvilGuest> {
  const directory = mkdtempSync(join(tmpdir(), "glovebox-evil-"));
  const server = createServer().listen(join(directory, "socket"));
  await once(server, "listening");
  const near = connect(join(directory, "socket"));
  const [far] = (await once(server, "connection")) as [Socket];
  far.on("error", () => undefined);
  let received = 0;
  let wake = (): void => undefined;
  far.on("data", (chunk: Buffer) => {
    received += chunk.length;
    wake();
  });
  const channel = new GuestChannel(near);
  const ended = new Promise<Error>((resolve) => {
    channel.onClosed = resolve;
  });
  let sequence = 0;
  const say = (type: number, call: number, body: Uint8Array = new Uint8Array()): void => {
    far.write(encodeFrame(sequence++, type, call, [body]));
  };
  if (greets) {
    say(ANSWER.hello, 0, greeting(PROTOCOL_VERSION, edition));
    await channel.hello;
  }
  return {
    channel,
    ended,
    say,
    raw: (bytes) => {
      far.write(bytes);
    },
    heard: async (bytes) => {
      while (received < bytes) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    close: async () => {
      channel.close();
      far.destroy();
      server.close();
      await once(server, "close");
      rmSync(directory, { recursive: true });
    },
  };
}
