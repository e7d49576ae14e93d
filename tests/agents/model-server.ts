import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { anthropic } from "./model-server/anthropic.js";
import { chat } from "./model-server/chat.js";
import { codeAssist } from "./model-server/code-assist.js";
import { gemini } from "./model-server/gemini.js";
import type { Asked, Protocol } from "./model-server/protocol.js";
import { responses } from "./model-server/responses.js";
import type { Turn } from "./model-server/turn.js";

export type { Turn } from "./model-server/turn.js";

const PROTOCOLS: readonly Protocol[] = [anthropic, responses, chat, gemini, codeAssist];
const KEY_HEADERS = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];

/** A request to the model, as it came. */
export interface ModelRequest extends Asked {
  readonly protocol: Protocol["name"];
  readonly path: string;
  readonly host: string;
  /** The headers that carried a key, with their values. */
  readonly auth: Readonly<Record<string, string>>;
  readonly body: Record<string, unknown>;
}

/** A request for something that is no model. */
export interface PageRequest {
  readonly path: string;
  readonly host: string;
  readonly auth: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Decides what the model says. `at` counts the requests from 0. */
export type Script = readonly Turn[] | ((request: ModelRequest, at: number) => Turn | Promise<Turn>);

/** A model on this machine's loopback that says what a test wants. */
export interface ModelServer extends AsyncDisposable {
  readonly port: number;
  /** Every request that was understood, in its order. */
  readonly requests: readonly ModelRequest[];
  /** Everything that no client should have sent: unknown paths, malformed requests, more requests than turns. */
  readonly faults: readonly string[];
  /** Starts anew: with this script, and nothing recorded. */
  play(script: Script): void;
  /** Answers requests that are no turns of the conversation, for example of a title; they are recorded as well. */
  aside(matches: (request: ModelRequest) => boolean, turn: Turn): void;
  /** Answers a path that is no model, with JSON; and to which hosts it was asked with which keys is recorded. */
  serve(path: string, body: unknown, method?: "GET" | "POST"): void;
  /** What was asked of those paths, in its order. */
  readonly pages: readonly PageRequest[];
}

/**
 * Starts a scripted model. It speaks Anthropic's Messages, OpenAI's Responses and chat completions, and Gemini; over TLS where it is given
 * a certificate.
 */
export async function startModelServer(
  certificate?: { key: Buffer; cert: Buffer },
  { address = "127.0.0.1", port = 0 }: { address?: string; port?: number } = {},
): Promise<ModelServer> {
  let script: Script = [];
  let turns = 0;
  let requests: ModelRequest[] = [];
  let faults: string[] = [];
  const asides: { matches: (request: ModelRequest) => boolean; turn: Turn }[] = [];
  const served = new Map<string, unknown>();
  const pages: PageRequest[] = [];

  const next = async (request: ModelRequest): Promise<Turn> => {
    const aside = asides.find(({ matches }) => matches(request));
    if (aside !== undefined) return aside.turn;
    const at = turns++;
    const turn = typeof script === "function" ? await script(request, at) : script[at];
    if (turn !== undefined) return turn;
    faults.push(`request ${at + 1}: the script has ${script.length} turns`);
    return { status: 400, message: "the script of the test is over" };
  };

  const take = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname: path } = new URL(incoming.url ?? "/", "http://model.test");
    const protocol = PROTOCOLS.find((each) => each.path.test(path));
    const text = await readBody(incoming);
    const host = incoming.headers.host ?? "";
    const page = served.get(`${incoming.method} ${path}`);
    if (page !== undefined) {
      pages.push({ path, host, auth: keysOf(incoming), text });
      return sendJson(response, 200, page);
    }
    if (protocol === undefined || incoming.method !== "POST") {
      faults.push(`${incoming.method} ${incoming.url}: there is no such path`);
      return sendJson(response, 404, { error: { message: `there is no ${path}` } });
    }
    let request: ModelRequest;
    try {
      const body = JSON.parse(text) as Record<string, unknown>;
      request = { protocol: protocol.name, path, host, auth: keysOf(incoming), body, ...protocol.read(body, path) };
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      faults.push(`${path}: ${message}`);
      return sendJson(response, 400, protocol.error(400, message));
    }
    requests.push(request);
    await answer(protocol, request, await next(request), response);
  };

  const serve = (incoming: IncomingMessage, response: ServerResponse): void => {
    take(incoming, response).catch((error: unknown) => {
      faults.push(String(error));
      response.destroy();
    });
  };
  const server = certificate === undefined ? createServer(serve) : createTlsServer(certificate, serve);
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  return {
    port: (server.address() as AddressInfo).port,
    get requests() {
      return requests;
    },
    get faults() {
      return faults;
    },
    play(wanted) {
      script = wanted;
      turns = 0;
      requests = [];
      faults = [];
      pages.length = 0;
    },
    aside: (matches, turn) => void asides.push({ matches, turn }),
    serve: (path, body, method = "GET") => void served.set(`${method} ${path}`, body),
    pages,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(protocol: Protocol, request: ModelRequest, turn: Turn, response: ServerResponse): Promise<void> {
  const gone = new Promise<void>((resolve) => response.once("close", resolve));
  if (turn.after !== undefined) await Promise.race([turn.after, gone]);
  if (response.destroyed) return;
  const { model } = request;
  if (turn.status !== undefined) {
    const message = turn.message ?? `scripted ${turn.status}`;
    return sendJson(response, turn.status, protocol.error(turn.status, message), turn.headers);
  }
  if (!request.isStream) return sendJson(response, 200, protocol.whole(turn, model), turn.headers);
  response.writeHead(200, { "content-type": "text/event-stream", ...turn.headers });
  const events = protocol.stream(turn, model);
  const sent = turn.stop === undefined ? events : events.slice(0, Math.ceil(events.length / 2));
  for (const { event, data } of sent) {
    response.write(`${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`);
    if (turn.pace !== undefined) await Promise.race([delay(turn.pace), gone]);
  }
  if (turn.stop === "hang") return await gone;
  if (turn.stop === "cut") return await cut(response);
  response.end(protocol.end);
}

/** Lets what was written out, then breaks the connection off. */
async function cut(response: ServerResponse): Promise<void> {
  await new Promise<void>((resolve) => response.write(": cut\n\n", () => resolve()));
  response.destroy();
}

function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

function keysOf({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    KEY_HEADERS.flatMap((name) => (typeof headers[name] === "string" ? [[name, headers[name]]] : [])),
  );
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString("utf8");
}
