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
  takeConnections(channel, "", take);
  await new GuestCall(channel, REQUEST.listen, new BodyWriter().u16(port).pieces).wait();
}

/** Hands the connections to a listener of the guest to `take`. `place` is what the guest names it by, in hexadecimal digits. */
export function takeConnections(
  channel: GuestChannel,
  place: string,
  take: (connection: DriverConnection) => void,
): void {
  channel.acceptors.set(place, (id) => {
    const call = new GuestCall(channel, "accepted", id);
    take(toConnection(call));
    return call;
  });
}

/** Freezes every process of the sandbox; rejects with `unavailable` if that takes too long. */
export async function freeze(channel: GuestChannel): Promise<void> {
  await new GuestCall(channel, REQUEST.freeze, []).wait();
}

/** Thaws them. */
export async function thaw(channel: GuestChannel): Promise<void> {
  await new GuestCall(channel, REQUEST.thaw, []).wait();
}
