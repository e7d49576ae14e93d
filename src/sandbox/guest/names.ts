import type { DriverConnection } from "../../../contracts/driver.js";
import type { GuestChannel } from "./channel.js";
import { BodyWriter, REQUEST, tampered } from "./frames.js";
import { GuestCall } from "./guest-process.js";
import { takeConnections } from "./listener.js";

/** The edition of a guest that has a resolver, and listeners at addresses of the host's choice. */
const EDITION = 4;
const DNS_PORT = 53;
/** An honest guest never has more queries without an answer. */
const MAX_WAITING = 64;

/** An address of the sandbox's loopback, `127.0.0.0` to `127.255.255.255`, as a number, and a port. */
export interface InsidePlace {
  readonly address: number;
  readonly port: number;
}

/** Whether the guest is new enough for `listenAt` and `resolveInside`. */
export function knowsNames(channel: GuestChannel): boolean {
  return channel.knows(EDITION);
}

/** Opens a listener at an address of the sandbox's loopback; `take` gets every connection. Rejects with a `GuestFailure` if it is taken. */
export async function listenAt(
  channel: GuestChannel,
  place: InsidePlace,
  take: (connection: DriverConnection) => void,
): Promise<void> {
  const body = bodyOf(place);
  takeConnections(channel, Buffer.concat(body).toString("hex"), take);
  await new GuestCall(channel, REQUEST.listenAt, body).wait();
}

/** Closes a listener; its connections stay. */
export async function stopListeningAt(channel: GuestChannel, place: InsidePlace): Promise<void> {
  await new GuestCall(channel, REQUEST.stopListening, bodyOf(place)).wait();
}

/**
 * Starts the resolver of a sandbox at an address of its loopback. `answer` gets each datagram, and gives the one to send back; undefined: none. It
 * must not throw.
 */
export async function resolveInside(
  channel: GuestChannel,
  address: number,
  answer: (query: Buffer) => Promise<Buffer | undefined>,
): Promise<void> {
  let waiting = 0;
  channel.onQuery = (body) => {
    if (waiting >= MAX_WAITING) throw tampered("more queries than it may");
    waiting++;
    const place = body.subarray(0, 4);
    void answer(body.subarray(4)).then((reply) => {
      waiting--;
      if (!channel.isClosed) channel.send(REQUEST.reply, 0, reply === undefined ? [place] : [place, reply]);
    });
  };
  await new GuestCall(channel, REQUEST.resolve, bodyOf({ address, port: DNS_PORT })).wait();
}

function bodyOf({ address, port }: InsidePlace): Uint8Array[] {
  return new BodyWriter().u32(address).u16(port).pieces;
}
