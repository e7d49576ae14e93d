import { constants } from "node:os";
import type { DriverConnection } from "../../../contracts/driver.js";
import { SandboxError } from "../../../contracts/errors.js";
import type { GuestChannel } from "./channel.js";
import { GuestFailure } from "./failure.js";
import { BodyWriter, REQUEST } from "./frames.js";
import { GuestCall } from "./guest-process.js";

const { ECONNREFUSED, ETIMEDOUT } = constants.errno;
/** The edition of a guest that knows these requests. */
const EDITION = 2;

/** The host's end of a connection that a call of the guest carries. */
export interface GuestConnection extends DriverConnection {
  /** Resolves when the connection has ended, in whatever way. */
  ended(): Promise<void>;
}

/** Makes a connection of a call. */
export function toConnection(call: GuestCall): GuestConnection {
  const ignore = (): void => undefined;
  return {
    input: call.stdout,
    write: async (chunk) => {
      await call.writeStdin(chunk, true);
      if (call.isOver) throw new Error("the process inside has closed the connection");
    },
    end: async () => {
      await call.closeStdin();
      await call.flushed();
    },
    destroy: () => {
      call.kill("SIGKILL").catch(ignore);
    },
    ended: () => call.wait().then(ignore, ignore),
  };
}

/** Connects to a server on the sandbox's loopback; `unavailable` if nobody listens on the port. */
export async function connectInside(
  channel: GuestChannel,
  port: number,
  signal?: AbortSignal,
): Promise<GuestConnection> {
  channel.assertEdition(EDITION, "a connection to a port");
  const call = new GuestCall(channel, REQUEST.connect, new BodyWriter().u16(port).pieces);
  try {
    await untilAborted(call, signal, call.started());
    return toConnection(call);
  } catch (error) {
    if (!(error instanceof GuestFailure) || error.number !== ECONNREFUSED) throw error;
    throw new SandboxError("unavailable", `Nobody listens on port ${port} in the sandbox`, { cause: error });
  }
}

/** Waits in the guest until a server on the sandbox's loopback accepts connections; false if none does within `timeout` milliseconds. */
export async function waitForPortInside(
  channel: GuestChannel,
  port: number,
  timeout: number,
  signal?: AbortSignal,
): Promise<boolean> {
  channel.assertEdition(EDITION, "waitForPort");
  const body = new BodyWriter().u16(port).u32(Math.ceil(timeout));
  const call = new GuestCall(channel, REQUEST.awaitPort, body.pieces);
  try {
    await untilAborted(call, signal, call.wait());
    return true;
  } catch (error) {
    if (error instanceof GuestFailure && error.number === ETIMEDOUT) return false;
    throw error;
  }
}

/** Ends the call when its caller gives up. */
async function untilAborted(
  call: GuestCall,
  signal: AbortSignal | undefined,
  outcome: Promise<unknown>,
): Promise<void> {
  const abort = (): void => void call.kill("SIGKILL").catch(() => undefined);
  if (signal?.aborted === true) abort();
  signal?.addEventListener("abort", abort, { once: true });
  try {
    await outcome;
  } catch (error) {
    throw signal?.aborted === true && error instanceof GuestFailure ? signal.reason : error;
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}
