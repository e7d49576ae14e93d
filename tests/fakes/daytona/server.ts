import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiRoutes } from "./api-routes.js";
import { handleFiles } from "./file-routes.js";
import { handleGit } from "./git-routes.js";
import { createHabits, type FaultAction, type Habits, takeFault } from "./habits.js";
import { HOME } from "./machine.js";
import { json, Refusal, refuse } from "./reply.js";
import { type SandboxEntry, toDto } from "./sandbox-state.js";
import type { SnapshotEntry } from "./snapshot-routes.js";
import { acceptWebSocket, type WebSocketPeer } from "./web-socket.js";

/** A service on this machine that speaks Daytona's wire and runs commands for real. */
export interface FakeDaytona {
  /** For `DAYTONA_API_URL`. */
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly habits: Habits;
  /** Every request as `METHOD /path`, and every socket as `WS /path`. */
  readonly requests: string[];
  readonly sandboxes: ReadonlyMap<string, SandboxEntry>;
  readonly snapshots: ReadonlyMap<string, SnapshotEntry>;
  /** The sandbox of this name, or the only one. */
  entry(name?: string): SandboxEntry;
  close(): Promise<void>;
}

/** Starts a service with one account and no sandboxes. */
export async function startFakeDaytona(): Promise<FakeDaytona> {
  const habits = createHabits();
  const apiKey = "dtn_0123456789abcdef";
  const requests: string[] = [];
  const events = new Set<WebSocketPeer>();
  const sockets = new Set<Duplex>();
  let origin = "";
  const api = new ApiRoutes(habits, () => origin);
  api.onState = (entry, oldState) => {
    const event = ["sandbox.state.updated", { sandbox: toDto(entry, origin), oldState, newState: entry.state }];
    for (const peer of events) peer.send(`42${JSON.stringify(event)}`);
  };
  const server = createServer((request, response) => void answer(request, response));
  server.on("upgrade", (request: IncomingMessage, socket: Duplex) => upgrade(request, socket));

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://localhost");
    const line = `${request.method} ${url.pathname}`;
    requests.push(line);
    const fault = takeFault(habits, `${line}${url.search}`);
    const source = url.pathname.startsWith("/api/") ? "api" : "daemon";
    try {
      if (await strike(fault, request, response)) return;
      if (url.pathname.startsWith("/preview/")) return preview(url, request, response);
      authorise(request, source);
      if (url.pathname.startsWith("/build-logs/")) return api.snapshots.sendLog(url.pathname, response);
      const path = url.pathname.replace(/^\/(api|toolbox\/[^/]+)/, "");
      const exchange = { method: request.method ?? "", path, query: url.searchParams, request, response };
      const id = /^\/toolbox\/([^/]+)/.exec(url.pathname)?.[1];
      const known = id === undefined ? await api.handle(exchange) : await toolbox(id, exchange);
      if (!known) throw new Refusal(404, `Cannot ${line}`);
    } catch (error) {
      refuse(response, error, source, url.pathname);
    }
  }

  async function toolbox(id: string, exchange: Parameters<ApiRoutes["handle"]>[0]): Promise<boolean> {
    const entry = reachable(id);
    const { method, path, response } = exchange;
    use(entry, response);
    if (path === "/work-dir" || path === "/user-home-dir") {
      if (method === "GET") json(response, 200, { dir: HOME });
      return method === "GET";
    }
    if (path.startsWith("/files")) return await handleFiles(entry.machine, exchange);
    if (path.startsWith("/git/")) return await handleGit(entry.machine, habits, exchange);
    return await entry.processes.handle(exchange);
  }

  /** A sandbox is in use as long as a request to it, or a socket, is open. */
  function use(entry: SandboxEntry, what: Duplex | ServerResponse): void {
    entry.uses += 1;
    what.once("close", () => {
      entry.uses -= 1;
      entry.usedAt = performance.now();
    });
  }

  /** A stopped sandbox looks as if the caller had done something wrong. */
  function reachable(id: string): SandboxEntry {
    const entry = api.sandboxes.get(id);
    if (entry === undefined || entry.state === "archived") throw new Refusal(404, "sandbox container not found");
    if (entry.state === "started") return entry;
    if (entry.state === "stopped") {
      if (!habits.blamesTheCaller) throw new Refusal(409, "the sandbox is stopped");
      throw new Refusal(400, "bad request: no IP address found. Is the Sandbox started?");
    }
    throw new Refusal(502, "");
  }

  function authorise(request: IncomingMessage, source: "api" | "daemon"): void {
    if (request.headers.authorization === `Bearer ${apiKey}`) return;
    const detail = "unauthorized: authentication failed: Bearer token is invalid";
    throw new Refusal(401, source === "api" ? "Invalid credentials" : detail);
  }

  function upgrade(request: IncomingMessage, socket: Duplex): void {
    const url = new URL(request.url ?? "/", "http://localhost");
    requests.push(`WS ${url.pathname}`);
    sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
    try {
      if (url.pathname === "/api/socket.io/") {
        greet(acceptWebSocket(request, socket));
        return;
      }
      // A browser, or what the SDK takes for one, cannot send headers with a handshake.
      const [, , id = "", ...rest] = url.pathname.split("/");
      const key = api.previews.get(url.searchParams.get("DAYTONA_SANDBOX_AUTH_KEY") ?? "");
      if (key === undefined || key.entry.id !== id) authorise(request, "daemon");
      if (habits.refuseFollow) throw new Refusal(502, "");
      const entry = reachable(id);
      const follow = entry.processes.follower(`/${rest.join("/")}`, url.searchParams);
      use(entry, socket);
      follow(acceptWebSocket(request, socket));
    } catch (error) {
      const status = error instanceof Refusal ? error.status : 500;
      socket.end(`HTTP/1.1 ${status} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
    }
  }

  function greet(peer: WebSocketPeer): void {
    peer.send(
      `0${JSON.stringify({ sid: "s", upgrades: [], pingInterval: 25_000, pingTimeout: 20_000, maxPayload: 1e6 })}`,
    );
    peer.onText = (text) => {
      if (!text.startsWith("40")) return;
      if (!text.includes(`"token":${JSON.stringify(apiKey)}`)) {
        peer.send('44{"message":"Unauthorized"}');
        return;
      }
      peer.send('40{"sid":"c"}');
      events.add(peer);
    };
    peer.onClose = () => events.delete(peer);
  }

  /** A signed address is enough by itself, until its time is over; another one wants its token beside it. */
  function preview(url: URL, request: IncomingMessage, response: ServerResponse): void {
    const { pathname: path, search } = url;
    const [, , token = "", ...rest] = path.split("/");
    const found = api.previews.get(token);
    const isSigned = found?.until !== undefined && performance.now() < found.until;
    const isNamed = found?.until === undefined && request.headers["x-daytona-preview-token"] === token;
    if (found === undefined || !(isSigned || isNamed)) throw new Refusal(401, "unauthorized");
    use(reachable(found.entry.id), response);
    const { method, headers } = request;
    const target = { host: "127.0.0.1", port: found.port, path: `/${rest.join("/")}${search}`, method, headers };
    const onward = httpRequest(target, (from) => {
      response.writeHead(from.statusCode ?? 502, from.headers);
      from.pipe(response);
    });
    onward.on("error", () => refuse(response, new Refusal(502, "no server on that port"), "daemon", path));
    request.pipe(onward);
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ apiUrl: `${origin}/api`, apiKey, habits, requests, sandboxes: api.sandboxes, snapshots: api.snapshots.all },
    entry: (name) => {
      const only = [...api.sandboxes.values()][0];
      const found = name === undefined ? only : api.find(name);
      if (found === undefined) throw new Error("there is no sandbox");
      return found;
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      await api.close();
      for (const socket of sockets) socket.destroy();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Does what a fault says; true when that was the answer. */
async function strike(
  fault: FaultAction | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<boolean> {
  if (fault === undefined) return false;
  if (fault === "reset") {
    request.socket.destroy();
    return true;
  }
  if (fault === "reset-after") {
    // The work is done, and the answer is lost.
    response.end = () => {
      request.socket.destroy();
      return response;
    };
    return false;
  }
  if ("delay" in fault) {
    await sleep(fault.delay);
    return false;
  }
  response.writeHead(fault.status, { "Content-Type": "application/json", ...fault.headers });
  response.end(fault.body === undefined ? "" : JSON.stringify(fault.body));
  return true;
}
