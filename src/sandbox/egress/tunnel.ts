import type { Socket } from "node:net";
import { readHello } from "./client-hello.js";
import type { ClientStream } from "./client-stream.js";
import { dial, type Route, writeTo } from "./dial.js";
import { normalizeHost } from "./host-name.js";
import type { Lifetime } from "./lifetime.js";
import { type BlockedHost, blockedHost } from "./refusal.js";
import type { RequestTarget } from "./request-target.js";

const ESTABLISHED = Buffer.from("HTTP/1.1 200 Connection established\r\n\r\n");

/** What one exchange with a program works with. */
export interface Exchange {
  client: ClientStream;
  life: Lifetime;
  route: Route;
  report(blocked: BlockedHost): void;
}

/** Joins a program with the host it asked for, both ways, each half as long as it lasts. */
export async function tunnel(exchange: Exchange, target: RequestTarget): Promise<void> {
  const { client, life, route } = exchange;
  const socket = await dial(target.host, target.port, route, life);
  await client.write(ESTABLISHED);
  await Promise.all([sendUp(exchange, target, socket), sendDown(exchange, socket)]);
}

async function sendUp({ client, life, report }: Exchange, target: RequestTarget, socket: Socket): Promise<void> {
  const opening = await readOpening(client, target, report);
  if (opening.length > 0) await writeTo(socket, opening, life);
  for (;;) {
    const chunk = await client.read();
    if (chunk === undefined) break;
    await writeTo(socket, chunk, life);
  }
  socket.end();
}

async function sendDown({ client, life }: Exchange, socket: Socket): Promise<void> {
  // A plain loop over a socket destroys it at the end of what it reads, and with it the half that still sends.
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    life.touch();
    await client.write(chunk as Buffer);
  }
  await client.end();
}

/**
 * Holds back the first bytes until it is known whether they name a server. A name other than the host of the tunnel would
 * reach, at an address that many hosts share, one that was never allowed.
 */
async function readOpening(
  client: ClientStream,
  { host, port }: RequestTarget,
  report: Exchange["report"],
): Promise<Buffer> {
  let opening = Buffer.alloc(0);
  for (;;) {
    const hello = readHello(opening);
    if (hello.kind === "unnamed") return opening;
    if (hello.kind === "named" && normalizeHost(hello.name) === host) return opening;
    if (hello.kind !== "more") {
      const name = hello.kind === "named" ? hello.name : "";
      report(blockedHost(name === "" ? host : name, port, "name_mismatch"));
      throw new Error("the TLS hello names another server");
    }
    const chunk = await client.read();
    if (chunk === undefined) return opening;
    opening = Buffer.concat([opening, chunk]);
  }
}
