import { once } from "node:events";
import { writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Agent, createServer, request } from "node:https";
import type { Socket } from "node:net";
import { join } from "node:path";
import { buffer, text } from "node:stream/consumers";
import { connect, type TLSSocket } from "node:tls";
import { makeAuthority } from "../../../src/sandbox/egress/authority.js";
import type { RequestFacts } from "../../../src/sandbox/egress/policy.js";
import type { EgressProxy } from "../../../src/sandbox/egress/proxy.js";
import type { BlockedHost } from "../../../src/sandbox/egress/refusal.js";
import type { SecretBroker } from "../../../src/sandbox/egress/secret-broker.js";
import { createCertificate } from "./certificate.js";
import { openTunnel } from "./origin.js";
import { listen, startProxy } from "./running-proxy.js";

/** A request that came whole. */
export interface Received {
  method: string;
  url: string;
  headers: readonly (readonly [name: string, value: string])[];
  body: Buffer;
}

/** An origin with TLS, and a proxy in front of it that ends TLS for its names. */
export interface InspectedOrigin extends AsyncDisposable {
  readonly port: number;
  readonly proxyPort: number;
  readonly proxy: EgressProxy;
  /** Goes through the proxy, and trusts the sandbox's authority alone. */
  readonly agent: Agent;
  /** The file with that authority. */
  readonly authorityFile: string;
  /** The file with the origin's own authority. */
  readonly originFile: string;
  /** What the proxy reported. */
  readonly blocked: readonly BlockedHost[];
  /** Everything that the origin has got so far, byte for byte. */
  bytes(): string;
  /** A connection in which a test writes what it likes. With `protocols` it offers these by ALPN. */
  open(name: string, protocols?: string[]): Promise<TLSSocket>;
  send(
    name: string,
    opts: { method?: string; path?: string; headers?: Record<string, string> },
    body?: string | Buffer,
  ): Promise<{ status: number; headers: IncomingMessage["headers"]; body: string }>;
}

/** Starts both in a folder of the test. */
export async function startInspectedOrigin(
  folder: string,
  names: readonly string[],
  broker: Pick<SecretBroker, "changesOf">,
  answer: (received: Received, response: ServerResponse) => void | Promise<void>,
  check: (request: RequestFacts) => void = () => undefined,
): Promise<InspectedOrigin> {
  const certificate = createCertificate(folder, names);
  const authority = makeAuthority(names);
  const authorityFile = join(folder, "authority.pem");
  writeFileSync(authorityFile, authority.certificate);
  const sockets = new Set<Socket>();
  const receive = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = "", url = "", rawHeaders } = incoming;
    const headers = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [[name, rawHeaders[at + 1] ?? ""] as const] : []));
    await answer({ method, url, headers, body: await buffer(incoming) }, response);
  };
  const server = createServer(certificate, (incoming, response) => {
    receive(incoming, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  let bytes = "";
  server.on("secureConnection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("data", (chunk: Buffer) => {
      bytes += chunk.toString("latin1");
    });
  });
  const port = await listen(server);
  const proxy = await startProxy(
    names.map((name) => `${name}:${port}`),
    {
      names: Object.fromEntries(names.map((name) => [name, "127.0.0.1"])),
      inspector: {
        inspectionOf: (host, at) => ({
          context: authority.contextFor(host),
          ca: [certificate.cert.toString()],
          check,
          changesOf: (method) => broker.changesOf(host, at, method),
        }),
      },
    },
  );
  const open = async (name: string, protocols?: string[]): Promise<TLSSocket> => {
    const socket = await openTunnel(proxy.port, `${name}:${port}`);
    const offered = protocols && { ALPNProtocols: protocols };
    return connect({ socket, servername: name, ca: authority.certificate, ...offered });
  };
  const agent = new Agent({ keepAlive: false });
  Object.assign(agent, {
    createConnection({ host }: { host: string }, created: (error: Error | null, socket?: Socket) => void) {
      open(host).then(
        (socket) => created(null, socket),
        (error: Error) => created(error),
      );
    },
  });
  return {
    port,
    proxyPort: proxy.port,
    proxy: proxy.proxy,
    agent,
    authorityFile,
    originFile: certificate.path,
    blocked: proxy.blocked,
    bytes: () => bytes,
    open,
    async send(name, opts, body) {
      const outgoing = request({ agent, host: name, port, ...opts });
      if (opts.headers?.["Expect"] === undefined) outgoing.end(body);
      else outgoing.once("continue", () => outgoing.end(body)).flushHeaders();
      const [response] = (await once(outgoing, "response")) as [IncomingMessage];
      return { status: response.statusCode ?? 0, headers: response.headers, body: await text(response) };
    },
    async [Symbol.asyncDispose]() {
      agent.destroy();
      await proxy[Symbol.asyncDispose]();
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
