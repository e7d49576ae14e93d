import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  createSecureServer,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import { connect, createServer as createTlsServer, type TLSSocket } from "node:tls";
import { makeAuthority } from "../../../src/sandbox/egress/authority.js";
import type { RequestFacts } from "../../../src/sandbox/egress/policy.js";
import type { ProxyLimits } from "../../../src/sandbox/egress/proxy.js";
import type { SecretBroker } from "../../../src/sandbox/egress/secret-broker.js";
import type { Traffic } from "../../../src/sandbox/egress/traffic/traffic.js";
import { createCertificate } from "./certificate.js";
import { openTunnel } from "./origin.js";
import { listen, type RunningProxy, startProxy } from "./running-proxy.js";

/** A request that an origin got. `body` once it has come whole. */
export interface TakenRequest {
  readonly headers: Readonly<Record<string, unknown>>;
  body?: string;
}

/** An origin that speaks nothing but HTTP/2, and a proxy in front of it that looks at its requests. */
export interface Http2Origin extends AsyncDisposable {
  readonly port: number;
  readonly proxy: RunningProxy;
  readonly asked: TakenRequest[];
  /** Connections to the origin that are open. */
  readonly sockets: ReadonlySet<Socket>;
  /** A TLS connection through the proxy that trusts the sandbox's authority alone. */
  open(protocols?: string[]): Promise<TLSSocket>;
  session(): Promise<ClientHttp2Session>;
}

/** What a test does with a request and its body, once that is there; without it, the answer is `ok`. */
export type Answer = (stream: ServerHttp2Stream, request: TakenRequest, whole: Promise<string>) => void | Promise<void>;

/** What an answer to a request was. */
export interface Answered {
  status: unknown;
  headers: Readonly<Record<string, unknown>>;
  trailer: Readonly<Record<string, unknown>>;
  body: string;
  /** The code of the error that broke it off. */
  broken?: string | undefined;
}

/** Starts both. */
export async function startHttp2Origin(
  folder: string,
  name: string,
  opts: {
    broker?: Pick<SecretBroker, "changesOf">;
    check?: (request: RequestFacts) => void | Promise<void>;
    answer?: Answer;
    /** It speaks no HTTP/2, and knows these protocols. */
    otherwise?: string[];
    /** It writes its own frames, whether or not HTTP/2 allows them. */
    speak?: (socket: TLSSocket) => void;
    limits?: Partial<ProxyLimits>;
    traffic?: Traffic;
    /** The origin's certificate is one that the proxy does not trust. */
    isUnknown?: boolean;
  } = {},
): Promise<Http2Origin> {
  const { broker = { changesOf: () => undefined }, check = () => undefined } = opts;
  const certificate = createCertificate(folder, [name]);
  const authority = makeAuthority([name]);
  const sockets = new Set<Socket>();
  const asked: TakenRequest[] = [];
  const spoken = opts.speak === undefined ? opts.otherwise : ["h2"];
  const server =
    spoken === undefined
      ? createSecureServer(certificate)
      : createTlsServer({ ...certificate, ...(spoken.length > 0 && { ALPNProtocols: spoken }) });
  server.on("secureConnection", (socket: TLSSocket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).once("close", () => sockets.delete(socket));
    opts.speak?.(socket);
  });
  server.on("sessionError", () => undefined).on("tlsClientError", () => undefined);
  server.on("stream", (stream: ServerHttp2Stream, headers: TakenRequest["headers"]) => {
    stream.on("error", () => undefined);
    const request: TakenRequest = { headers };
    asked.push(request);
    const pieces: Buffer[] = [];
    stream.on("data", (piece: Buffer) => pieces.push(piece));
    const whole = new Promise<string>((resolve) => {
      stream.once("end", () => {
        if (stream.rstCode === 0) request.body = Buffer.concat(pieces).toString("latin1");
        resolve(request.body ?? "");
      });
    });
    if (opts.answer !== undefined) void opts.answer(stream, request, whole);
    else {
      void whole.then(() => {
        stream.respond({ ":status": 200 });
        stream.end("ok");
      });
    }
  });
  const port = await listen(server);
  const proxy = await startProxy([`${name}:${port}`], {
    names: { [name]: "127.0.0.1" },
    ...(opts.limits && { limits: opts.limits }),
    ...(opts.traffic && { traffic: opts.traffic }),
    inspector: {
      inspectionOf: (host) => ({
        context: authority.contextFor(host),
        ca: opts.isUnknown === true ? undefined : [certificate.cert.toString()],
        check,
        changesOf: (method, useSecret) => broker.changesOf(host, 443, method, useSecret),
      }),
    },
  });
  const open = async (offered: string[] = ["h2"]): Promise<TLSSocket> => {
    const socket = await openTunnel(proxy.port, `${name}:${port}`);
    socket.setNoDelay();
    const tls = connect({ socket, servername: name, ca: authority.certificate, ALPNProtocols: offered });
    await once(tls, "secureConnect");
    return tls;
  };
  return {
    port,
    proxy,
    asked,
    sockets,
    open,
    async session() {
      const tls = await open();
      return connectHttp2(`https://${name}:${port}`, { createConnection: () => tls }).on("error", () => undefined);
    },
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Sends a request, and gives all that comes back. */
export async function ask(
  session: ClientHttp2Session,
  headers: Record<string, string | string[]>,
  body?: string | Buffer,
): Promise<Answered> {
  const stream = session.request(headers, { endStream: body === undefined });
  const answered: Answered = { status: undefined, headers: {}, trailer: {}, body: "" };
  stream.on("response", (found) => Object.assign(answered, { status: found[":status"], headers: found }));
  stream.on("trailers", (found) => Object.assign(answered, { trailer: found }));
  stream.on("data", (piece: Buffer) => {
    answered.body += piece.toString("latin1");
  });
  stream.on("error", (error: Error) => {
    answered.broken = error.message;
  });
  if (body !== undefined) stream.end(body);
  await new Promise((resolve) => stream.once("close", resolve));
  return stream.rstCode === 0 ? answered : { ...answered, broken: answered.broken ?? `code ${stream.rstCode}` };
}
