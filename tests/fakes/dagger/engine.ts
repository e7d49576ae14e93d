import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Graph } from "./graph.js";
import { answerQuery } from "./query.js";
import type { ObjectValue } from "./values.js";

/** A session endpoint as the Dagger CLI opens one. It runs containers for real, under bubblewrap. */
export interface DaggerEngine extends AsyncDisposable {
  readonly port: number;
  readonly token: string;
  readonly graph: Graph;
  /** What was asked, in order. */
  readonly queries: string[];
  /** Answers this instead of a query that it is asked for next, when it matches. */
  fault(match: RegExp, status: number, body: string): void;
  /** Ends every connection at once, as an engine that crashes does; whatever ran is gone. */
  crash(): void;
  close(): Promise<void>;
}

/** How an engine differs from the others. */
export interface EngineOptions {
  /** Tags that lead to another image by now. */
  moved?: readonly string[];
  /** How long the ports of a service may take to answer, in milliseconds. */
  healthyWithin?: number;
}

/** Starts an engine of its own on a free port of the loopback. */
export async function startDaggerEngine(options: EngineOptions = {}): Promise<DaggerEngine> {
  const graph = new Graph(options);
  const token = randomBytes(12).toString("hex");
  const queries: string[] = [];
  const faults: { match: RegExp; status: number; body: string }[] = [];
  const sockets = new Set<Socket>();
  const authorization = `Basic ${Buffer.from(`${token}:`).toString("base64")}`;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    if (request.headers.authorization !== authorization) {
      response.writeHead(401).end("unauthorized");
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { query } = JSON.parse(Buffer.concat(chunks).toString()) as { query: string };
    queries.push(query);
    const at = faults.findIndex(({ match }) => match.test(query));
    const [fault] = at < 0 ? [] : faults.splice(at, 1);
    if (fault !== undefined) {
      response.writeHead(fault.status, { "content-type": "application/json" }).end(fault.body);
      return;
    }
    const { resolvers } = graph;
    const load = (id: string): ObjectValue => graph.load(id);
    const { status, body } = await answerQuery(query, { resolvers, load, signal: gone.signal });
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  server.requestTimeout = 0;
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const crash = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  const close = async (): Promise<void> => {
    const closed = new Promise((resolve) => {
      server.close(resolve);
    });
    crash();
    await closed;
    graph.close();
  };
  return {
    port: (server.address() as AddressInfo).port,
    token,
    graph,
    queries,
    fault: (match, status, body) => faults.push({ match, status, body }),
    crash,
    close,
    [Symbol.asyncDispose]: close,
  };
}
