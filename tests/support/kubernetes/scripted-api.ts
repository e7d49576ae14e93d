import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { KubeClient } from "../../../src/sandbox/backends/kubernetes/client/kube-client.js";
import type { ClusterUser } from "../../../src/sandbox/backends/kubernetes/client/kubeconfig.js";

/** One request as the server got it. */
export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** A server that answers as a test says, and remembers what it was asked. */
export interface ScriptedApi extends AsyncDisposable {
  readonly port: number;
  readonly seen: SeenRequest[];
  /** Upgrades, and the socket that each one has. */
  onUpgrade: ((request: IncomingMessage, socket: Duplex) => void) | undefined;
  client(user?: ClusterUser): KubeClient;
}

/** Starts it. `answer` gets each request with its whole body. */
export async function startScriptedApi(
  answer: (request: SeenRequest, response: ServerResponse, index: number) => void,
): Promise<ScriptedApi> {
  const seen: SeenRequest[] = [];
  const clients: KubeClient[] = [];
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const whole = { method, url, headers, body: Buffer.concat(pieces).toString("utf8") };
      seen.push(whole);
      answer(whole, response, seen.length - 1);
    });
  });
  const sockets = new Set<Duplex>();
  server.on("connection", (socket: Duplex) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const api: ScriptedApi = {
    port,
    seen,
    onUpgrade: undefined,
    client(user = {}) {
      const client = new KubeClient({
        name: "scripted",
        server: new URL(`http://127.0.0.1:${port}`),
        namespace: "team",
        isVerified: true,
        user,
      });
      clients.push(client);
      return client;
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.close();
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  server.on("upgrade", (request, socket: Duplex) => {
    seen.push({ method: "UPGRADE", url: request.url ?? "", headers: request.headers, body: "" });
    api.onUpgrade?.(request, socket);
  });
  return api;
}

/** Answers with JSON. */
export function json(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "Content-Type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

/** Answers with a failure, as the API server words it. */
export function failure(response: ServerResponse, code: number, reason: string, message: string, headers = {}): void {
  json(response, code, { kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message }, headers);
}
