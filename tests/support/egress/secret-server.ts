import { EventEmitter, once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { egressInternals } from "../../../src/sandbox/egress/open-egress.js";
import { createCertificate } from "./certificate.js";

/** What a server was asked. */
export interface Asked {
  readonly host: string;
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  /** The first 4 MiB. */
  readonly body: string;
  readonly bytes: number;
}

/** A server with a certificate of its own that stands for every host, and repeats what it is asked. */
export interface SecretServer {
  readonly port: number;
  readonly asked: Asked[];
  /** Lets an answer of `/open` go on that waits after its first line, and one of `/late`, which waits before its head. */
  goOn(): void;
  close(): void;
}

const MOST_KEPT = 4 << 20;

/** Starts it, and has every sandbox that is opened from now on reach it by these names. */
export async function startSecretServer(
  directory: string,
  names: readonly string[],
  { address = "127.0.0.1", port = 0 }: { address?: string; port?: number } = {},
): Promise<SecretServer> {
  const asked: Asked[] = [];
  const waiting = new EventEmitter().setMaxListeners(0);
  const certificate = createCertificate(directory, names);
  const server = createServer(certificate, (request, response) => {
    void answer(request, response, asked, waiting).catch(() => response.destroy());
  });
  server.on("tlsClientError", () => undefined);
  server.listen(port, address);
  await once(server, "listening");
  egressInternals.route = { lookup: async () => [address], isReachable: (found) => found === address };
  egressInternals.ca = [certificate.cert.toString()];
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    goOn: () => void waiting.emit("go on"),
    close() {
      server.close();
      server.closeAllConnections();
      delete egressInternals.route;
      delete egressInternals.ca;
    },
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  asked: Asked[],
  waiting: EventEmitter,
): Promise<void> {
  const { method = "", url = "", headers } = request;
  const kept: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= MOST_KEPT) kept.push(chunk);
  }
  const body = Buffer.concat(kept).toString("latin1");
  asked.push({ host: headers.host ?? "", method, url, headers, body, bytes });
  const key = String(headers["x-api-key"] ?? headers.authorization ?? "none");
  if (url.startsWith("/elsewhere")) {
    response.writeHead(302, { Location: `https://${url.split("=")[1]}/?key=${encodeURIComponent(key)}` }).end();
  } else if (url.startsWith("/late")) {
    await once(waiting, "go on");
    response.setHeader("X-Reflected", key).end(key);
  } else if (url.startsWith("/open")) {
    response.write(`data: ${key}\n\n`);
    await once(waiting, "go on");
    response.end("data: end\n\n");
  } else if (url.startsWith("/gzip")) {
    response.setHeader("Content-Encoding", "gzip").end(gzipSync(`you sent ${key}`));
  } else if (url.startsWith("/pieces")) {
    // One byte at a time, so that the value is cut at every place.
    for (const byte of `you sent ${key}.`) {
      response.write(byte);
      await new Promise(setImmediate);
    }
    response.end();
  } else if (url.startsWith("/large")) {
    const chunk = Buffer.alloc(1 << 16, "x");
    for (let left = Number(url.split("=")[1]); left > 0; left -= chunk.length) {
      if (!response.write(chunk.subarray(0, left))) await once(response, "drain");
    }
    response.end();
  } else {
    response.statusMessage = key;
    response.setHeader("X-Reflected", key);
    response.end(JSON.stringify({ url, headers, body, basic: Buffer.from(`user:${key}`).toString("base64") }));
  }
}
