import { performServerHandshake, type ServerHttp2Stream } from "node:http2";
import type { TLSSocket } from "node:tls";
import type { Lifetime } from "../../lifetime.js";
import { explainRefusal, Refusal, refusalHeaders } from "../../refusal.js";
import { breakOff, endLater } from "./forward-stream.js";
import { pairsOf, toRecord } from "./stream-head.js";

/** Requests of one connection at the same time. */
const STREAMS = 100;

/** What Node allows a peer: a frame that it does not, or too many of them, end the connection. */
const LIMITS = {
  settings: { maxConcurrentStreams: STREAMS, maxHeaderListSize: 64 << 10, enableConnectProtocol: false },
  maxHeaderListPairs: 128,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
};

/** Codes of gRPC for a refusal, so that its clients show why. */
const GRPC: Readonly<Record<number, number>> = { 400: 3, 403: 7, 413: 8, 431: 8, 502: 14, 503: 14, 504: 4 };
const UNKNOWN = 2;

/** A request, as it came. */
export type TakenStream = (stream: ServerHttp2Stream, list: readonly string[]) => Promise<void>;

/** What ends a program's connection. */
export interface Http2Limits {
  readonly life: Lifetime;
  /** Milliseconds to the end of the first request's head. */
  readonly head: number;
  /** Milliseconds without a request under way, whatever else moves. */
  readonly idle: number;
  /** Milliseconds for a program that goes on sending after a refusal. */
  readonly linger: number;
}

/** Serves the requests of a program's HTTP/2 connection until it is over. Gives how many there were. A `Refusal` of `take` is their answer. */
export async function serveHttp2(
  socket: TLSSocket,
  { life, head, idle, linger }: Http2Limits,
  take: TakenStream,
): Promise<number> {
  let taken = 0;
  let underWay = 0;
  let isLate = false;
  const session = performServerHandshake(socket, LIMITS);
  // It waits for a handshake that is over: of a socket that no server of Node has made, it can't know.
  socket.emit("secureConnect");
  const closed = new Promise<void>((resolve) => session.once("close", () => resolve()));
  life.onEnd(() => session.destroy());
  // The program gets a moment to read why, and would keep its half open otherwise.
  session.on("error", () => void setTimeout(() => socket.destroy(), linger).unref());
  // Pings and parts of a head are bytes that move, so the lifetime's own limit would never end them.
  const giveUp = (): void => {
    isLate = true;
    session.close();
    setTimeout(() => socket.destroy(), linger).unref();
  };
  let waiting = setTimeout(giveUp, head).unref();
  session.once("close", () => clearTimeout(waiting));
  session.on("stream", (...[stream, , , list]: [ServerHttp2Stream, unknown, number, string[]?]) => {
    taken++;
    underWay++;
    clearTimeout(waiting);
    stream.once("close", () => {
      if (--underWay === 0 && !session.destroyed) waiting = setTimeout(giveUp, idle).unref();
    });
    stream.on("error", () => undefined); // the next read or write fails
    take(stream, list ?? [])
      .catch((error: unknown) => {
        if (!(error instanceof Refusal) || stream.headersSent) throw error;
        refuse(stream, list ?? [], error);
        stream.resume();
        endLater(stream, linger);
      })
      .catch(() => breakOff(stream));
  });
  await life.during(closed);
  if (isLate && taken === 0) throw new Error("the first request took too long");
  return taken;
}

function refuse(stream: ServerHttp2Stream, list: readonly string[], refusal: Refusal): void {
  const text = explainRefusal(refusal);
  const type = pairsOf(list).find(([name]) => name === "content-type")?.[1] ?? "";
  if (/^application\/grpc\b/.test(type)) {
    const code = GRPC[refusal.status] ?? UNKNOWN;
    const status = { "grpc-status": `${code}`, "grpc-message": encodeURIComponent(text.trim()) };
    stream.respond({ ":status": 200, "content-type": "application/grpc", ...status }, { endStream: true });
    return;
  }
  stream.respond({ ":status": refusal.status, ...toRecord(refusalHeaders(refusal)) });
  stream.end(text);
}
