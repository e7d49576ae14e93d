import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { Server } from "node:net";
import type { Certificate } from "./certificate.js";

/** Web servers at ports 80 and 443 of a loopback address that is this process's own. */
export interface LowOrigin {
  readonly address: string;
  readonly requests: IncomingMessage[];
  close(): void;
}

/** Why there can be none; undefined when there can. */
export function whyNoLowPorts(): string | undefined {
  return process.getuid?.() === 0 ? undefined : "only root listens on ports 80 and 443 of this machine";
}

/** An address of loopback that no other process of the tests uses. */
export function ownLoopback(): string {
  return `127.99.${(process.pid >> 8) & 255}.${process.pid & 255}`;
}

/** Starts both. They answer with their scheme, the method and the Host. */
export async function startLowOrigin(certificate: Certificate): Promise<LowOrigin> {
  const address = ownLoopback();
  const requests: IncomingMessage[] = [];
  const answering = (scheme: string) => (incoming: IncomingMessage, response: { end(text: string): void }) => {
    requests.push(incoming);
    response.end(`${scheme} ${incoming.method} ${incoming.headers.host}`);
  };
  const servers: [Server, number][] = [
    [createHttpServer(answering("http")), 80],
    [createTlsServer(certificate, answering("https")), 443],
  ];
  for (const [server, port] of servers) {
    server.listen(port, address);
    await once(server, "listening");
  }
  return {
    address,
    requests,
    close: () => {
      for (const [server] of servers) server.close();
    },
  };
}
