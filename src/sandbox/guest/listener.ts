import type { DriverConnection } from "../../../contracts/driver.js";
import type { GuestChannel } from "./channel.js";
import { toConnection } from "./connection.js";
import { BodyWriter, REQUEST } from "./frames.js";
import { GuestCall } from "./guest-process.js";

/** Opens a listener on the sandbox's loopback; `take` gets every connection. */
export async function listenInside(
  channel: GuestChannel,
  port: number,
  take: (connection: DriverConnection) => void,
): Promise<void> {
  channel.onAccepted = (id) => {
    const call = new GuestCall(channel, "accepted", id);
    take(toConnection(call));
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
