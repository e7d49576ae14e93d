import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { listen } from "./running-proxy.js";

/** A web server that answers, and remembers what it was asked. */
export interface Origin {
  readonly port: number;
  readonly requests: IncomingMessage[];
  /** Of the requests that came whole. */
  readonly bodies: string[];
  close(): void;
}

/** Starts a web server on loopback whose paths each answer in a way of their own. */
export async function startOrigin(): Promise<Origin> {
  const requests: IncomingMessage[] = [];
  const bodies: string[] = [];
  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    requests.push(incoming);
    const body = await text(incoming).catch(() => undefined);
    if (body === undefined) return;
    bodies.push(body);
    const { url = "" } = incoming;
    if (url === "/empty") response.writeHead(204).end();
    else if (url === "/elsewhere") response.writeHead(302, { Location: "http://evil.test/" }).end();
    else if (url === "/chunks") {
      response.setHeader("Connection", "keep-alive, X-Private");
      response.setHeader("X-Private", "1");
      response.write("one ");
      response.end("two");
    } else if (url === "/torn") {
      response.write("one ", () => response.destroy());
    } else response.setHeader("Content-Length", 13).end(`hello ${incoming.method?.padEnd(7)}`);
  };
  const server = createServer((incoming, response) => void answer(incoming, response));
  const port = await listen(server);
  return { port, requests, bodies, close: () => server.close() };
}

/** Opens a tunnel and gives its socket, once the proxy said yes. */
export async function openTunnel(port: number, authority: string): Promise<Socket> {
  const outgoing = request({ host: "127.0.0.1", port, method: "CONNECT", path: authority, agent: false });
  outgoing.end();
  const [response, socket, first] = (await once(outgoing, "connect")) as [IncomingMessage, Socket, Buffer];
  if (response.statusCode !== 200) throw new Error(`the proxy said ${response.statusCode}`);
  if (first.length > 0) socket.unshift(first);
  return socket;
}
