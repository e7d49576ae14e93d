import { isIP, type Socket } from "node:net";
import { type ClientHello, readHello } from "./client-hello.js";
import type { ClientStream } from "./client-stream.js";
import { type Route, writeTo } from "./dial.js";
import { normalizeHost, normalizeIPv6 } from "./host-name.js";
import type { Lifetime } from "./lifetime.js";
import { type BlockedHost, type BlockReason, blockedHost } from "./refusal.js";
import type { RequestTarget } from "./request-target.js";
import type { Passing } from "./traffic/traffic.js";

/** The answer to CONNECT. */
export const ESTABLISHED: Buffer = Buffer.from("HTTP/1.1 200 Connection established\r\n\r\n");

/** What is needed to serve one connection. */
export interface Exchange {
  client: ClientStream;
  life: Lifetime;
  route: Route;
  /** What the program gets before the first byte of a tunnel. */
  established: Buffer;
  /** Opens a connection to the host that was asked for, at an address that its rules allow. */
  dial(): Promise<Socket>;
  report(blocked: BlockedHost, method?: string): void;
  /** Where it is written down. Absent: nowhere. */
  passing?: Passing | undefined;
}

/** What a tunnel must start with. */
export interface Opening {
  /** Whether it may carry something other than TLS. */
  isPlain: boolean;
  /** Milliseconds for the TLS hello. */
  timeout: number;
}

/** Connects a program with the host it asked for, both ways, until each half ends. */
export async function tunnel(exchange: Exchange, target: RequestTarget, opening: Opening): Promise<void> {
  const { client } = exchange;
  const socket = await exchange.dial();
  await client.write(exchange.established);
  if (opening.isPlain) {
    const up = readOpening(exchange, target, true).then((first) => sendUp(exchange, socket, first));
    await Promise.all([up, sendDown(exchange, socket)]);
    return;
  }
  const first = await readHelloFirst(exchange, target, socket, opening.timeout);
  if (first.length > 0) await Promise.all([sendUp(exchange, socket, first), sendDown(exchange, socket)]);
}

/** Sends these bytes and then all that the program sends, until it ends its half. */
export async function sendUp({ client, life }: Exchange, socket: Socket, first: Buffer): Promise<void> {
  if (first.length > 0) await writeTo(socket, first, life);
  for (;;) {
    const chunk = await client.read();
    if (chunk === undefined) break;
    await writeTo(socket, chunk, life);
  }
  socket.end();
}

/** Sends the program all that comes back, until the other side ends its half. */
export async function sendDown(
  { client, life }: Exchange,
  socket: Socket,
  rewrite: (pieces: AsyncIterable<Buffer>) => AsyncIterable<Buffer> = (pieces) => pieces,
): Promise<void> {
  // A plain loop over a socket destroys it at the end of the input, and with it the half that still sends.
  const pieces = socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  for await (const piece of rewrite(pieces)) {
    life.touch();
    await client.write(piece);
  }
  await client.end();
}

/** Waits for a hello before any byte passes. A server that sends something before it got one doesn't speak TLS. */
async function readHelloFirst(
  exchange: Exchange,
  target: RequestTarget,
  socket: Socket,
  timeout: number,
): Promise<Buffer> {
  const late = (): Error => refuse(exchange, target, "no_name");
  let watch = (): void => undefined;
  const spoken = new Promise<never>((_resolve, reject) => {
    watch = () => {
      if (socket.readableLength > 0) reject(late());
    };
    socket.on("readable", watch);
  });
  try {
    return await exchange.life.within(Promise.race([readOpening(exchange, target, false), spoken]), timeout, late);
  } finally {
    socket.off("readable", watch);
  }
}

/**
 * Reads the first bytes until it is clear whether they name a server. Another name than the tunnel's host, or none, could reach a host that is
 * not allowed, at an address that many share. Returns nothing when the program closes first.
 */
export async function readOpening(exchange: Exchange, target: RequestTarget, isPlain: boolean): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for (let atLeast = 1; ; ) {
    const chunk = await exchange.client.read();
    if (chunk === undefined && (isPlain || length === 0)) return Buffer.concat(chunks);
    if (chunk === undefined) throw refuse(exchange, target, "no_name");
    chunks.push(chunk);
    length += chunk.length;
    if (length < atLeast) continue;
    const opening = Buffer.concat(chunks);
    const hello = readHello(opening);
    if (hello.kind !== "more") {
      checkHello(exchange, target, hello, isPlain);
      return opening;
    }
    atLeast = hello.atLeast;
  }
}

function checkHello(exchange: Exchange, target: RequestTarget, hello: ClientHello, isPlain: boolean): void {
  if (hello.kind === "malformed") throw refuse(exchange, target, "name_mismatch");
  if (hello.kind === "named" && !isNameOf(hello.name, target.host)) {
    throw refuse(exchange, { ...target, host: hello.name === "" ? target.host : hello.name }, "name_mismatch");
  }
  if (isPlain) return;
  // An address has no name that a hello could carry.
  if (hello.kind === "other" || (hello.kind === "unnamed" && isIP(target.host) === 0)) {
    throw refuse(exchange, target, "no_name");
  }
}

function isNameOf(name: string, host: string): boolean {
  return (normalizeHost(name) ?? normalizeIPv6(name)) === host;
}

/** Reports a tunnel that is cut off. Its program got the answer to CONNECT and gets nothing more. */
function refuse({ report }: Exchange, { host, port }: RequestTarget, reason: BlockReason): Error {
  report(blockedHost(host, port, reason));
  return new Error("the tunnel did not open as it must");
}
