import { createServer } from "node:http";
import { connect, type Socket } from "node:net";
import { listen } from "./running-proxy.js";

/** A proxy of an organisation, as a test has it. */
export interface UpstreamServer {
  readonly port: number;
  /** The target and the password of each CONNECT, in order. */
  readonly asked: string[];
  close(): void;
}

/** Starts a small proxy for CONNECT that wants a password, and for which every name leads to loopback. */
export async function startUpstream(authorization?: string): Promise<UpstreamServer> {
  const asked: string[] = [];
  const server = createServer((_request, response) => response.writeHead(501).end());
  server.on("connect", (request, socket: Socket) => {
    asked.push(`${request.url} ${request.headers["proxy-authorization"] ?? ""}`);
    socket.on("error", () => undefined);
    if (request.headers["proxy-authorization"] !== authorization) {
      socket.end("HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n");
      return;
    }
    const target = connect(Number((request.url ?? "").split(":")[1]), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      target.pipe(socket).pipe(target);
    });
    target.on("error", () => socket.destroy());
  });
  return {
    port: await listen(server),
    asked,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
