import type { GuestChannel } from "./channel.js";
import { BodyWriter, REQUEST } from "./frames.js";
import { GuestCall } from "./guest-process.js";

/** A connection that a process in the sandbox made to the guest's listener. */
export interface GuestConnection {
  readonly input: AsyncIterable<Uint8Array>;
  /** Resolves once there is room for more; rejects once the other side is gone. */
  write(chunk: Uint8Array): Promise<void>;
  /** Ends the output; the other side may still write. Resolves once it has read everything. */
  end(): Promise<void>;
  destroy(): void;
}

/** Opens a listener on the sandbox's loopback; `take` gets every connection. */
export async function listenInside(
  channel: GuestChannel,
  port: number,
  take: (connection: GuestConnection) => void,
): Promise<void> {
  channel.onAccepted = (id) => {
    const call = new GuestCall(channel, "accepted", id);
    take({
      input: call.stdout,
      write: async (chunk) => {
        await call.writeStdin(chunk);
        if (call.isOver) throw new Error("the process inside has closed the connection");
      },
      end: async () => {
        await call.closeStdin();
        await call.flushed();
      },
      destroy: () => {
        call.kill("SIGKILL").catch(() => undefined);
      },
    });
    return call;
  };
  await new GuestCall(channel, REQUEST.listen, new BodyWriter().u16(port).pieces).wait();
}

/** Freezes every process of the sandbox; rejects with `unavailable` if that takes too long. */
export async function freeze(channel: GuestChannel): Promise<void> {
  await new GuestCall(channel, REQUEST.freeze, []).wait();
}

/** Thaws them. */
export async function thaw(channel: GuestChannel): Promise<void> {
  await new GuestCall(channel, REQUEST.thaw, []).wait();
}
