import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import * as is from "../util/schema.js";
import { answerPreflight, isPreflight, letPageRead } from "./http/cors.js";
import { passOn } from "./http/pass-on.js";
import { RateLimit } from "./http/rate-limit.js";
import { readBody } from "./http/read-body.js";
import { isKnownHost, isKnownOrigin } from "./http/site-check.js";
import { TokenCheck } from "./http/token-check.js";
import { MAX_MESSAGE, MAX_OPEN } from "./limits.js";
import type { McpServer } from "./server.js";

/** Options of `serveHttp`. */
export interface HttpOptions {
  /** Default 0: any that is free. */
  port?: number;
  /** The address to listen on. Default `127.0.0.1`. */
  host?: string;
  /** The tokens of the clients, each at least 16 characters. Sandboxes belong to the token that they were made with. */
  tokens: readonly string[];
  /** Names of this server that requests may be for, beside those of the loopback. */
  allowHosts?: readonly string[];
  /** Web pages that may send requests, such as `https://example.com`, beside those of the loopback. */
  allowOrigins?: readonly string[];
  /** Requests of one token in a second; twice as many in a burst. Default 50. */
  rate?: number;
}

/** A server that listens. */
export interface HttpServer extends AsyncDisposable {
  /** Where clients find it, for example `http://127.0.0.1:8931/mcp`. */
  readonly url: string;
  /** Stops listening and cuts every connection. The sandboxes stay until the `McpServer` is closed. */
  close(): Promise<void>;
}

const PATH = "/mcp";
const RATE = 50;
const HEAD_TIME = 10_000;
const BODY_TIME = 60_000;
const MAX_CONNECTIONS = 256;
const RETRY = { "retry-after": "1" };

const schema: is.Schema<HttpOptions> = is.object({
  port: is.whole(0, 65_535),
  host: is.text,
  tokens: is.required(is.list(is.token, { minItems: 1 })),
  allowHosts: is.list(is.text),
  allowOrigins: is.list(is.text),
  rate: is.whole(1, 100_000),
});

/** Serves clients over HTTP: only with a token, and only for hosts and web pages that are named. */
export async function serveHttp(mcp: McpServer, options: HttpOptions): Promise<HttpServer> {
  is.check(options, schema, "options");
  const { port = 0, host = "127.0.0.1" } = options;
  const gate = new Gate(options);
  const server = createServer((request, response) => {
    answer(mcp, gate, request, response).catch(() => response.destroy());
  });
  server.headersTimeout = HEAD_TIME;
  server.requestTimeout = BODY_TIME;
  server.maxConnections = MAX_CONNECTIONS;
  await listen(server, port, host);
  const { port: taken } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${taken}${PATH}`,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** A refusal before anything of a request is looked at further. */
class Refusal extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

/** Decides who may send requests, and how many. */
class Gate {
  readonly #options: HttpOptions;
  readonly #tokens: TokenCheck;
  readonly #rate: RateLimit;
  readonly #open = new Map<string, number>();

  constructor(options: HttpOptions) {
    this.#options = options;
    this.#tokens = new TokenCheck(options.tokens);
    this.#rate = new RateLimit(options.rate ?? RATE);
  }

  /** Refuses a request that is for another server, or from a page that is not allowed. */
  checkSite({ headers, url = "" }: IncomingMessage): void {
    const { allowHosts = [], allowOrigins = [] } = this.#options;
    if (!isKnownHost(headers.host, allowHosts)) throw new Refusal(403, "This host is not served here");
    if (!isKnownOrigin(headers.origin, allowOrigins)) throw new Refusal(403, "This origin may not send requests");
    if (url.split("?")[0] !== PATH) throw new Refusal(404, `There is nothing but ${PATH}`);
  }

  /** Whose request it is, or a `Refusal`. Counts as open until the response is over. */
  admit({ headers }: IncomingMessage, response: ServerResponse): string {
    const owner = this.#tokens.ownerOf(headers.authorization);
    if (owner === undefined) {
      throw new Refusal(401, "A valid bearer token is required", { "www-authenticate": 'Bearer realm="glovebox"' });
    }
    if (!this.#rate.take(owner)) throw new Refusal(429, "Too many requests", RETRY);
    const open = this.#open.get(owner) ?? 0;
    if (open >= MAX_OPEN) throw new Refusal(429, `${MAX_OPEN} requests are open, which is the most`, RETRY);
    this.#open.set(owner, open + 1);
    response.once("close", () => this.#open.set(owner, (this.#open.get(owner) ?? 1) - 1));
    return owner;
  }
}

async function answer(mcp: McpServer, gate: Gate, request: IncomingMessage, response: ServerResponse): Promise<void> {
  let owner: string;
  let body: Buffer;
  try {
    gate.checkSite(request);
    letPageRead(request, response);
    if (isPreflight(request)) return answerPreflight(request, response);
    owner = gate.admit(request, response);
    body = await readBody(request, MAX_MESSAGE);
  } catch (error) {
    return refuse(response, error);
  }
  await passOn((web) => mcp.fetch(web, owner), request, body, response);
}

function refuse(response: ServerResponse, error: unknown): void {
  const { status, headers = {} } = error instanceof Refusal ? error : { status: 413 };
  const text = error instanceof Refusal ? error.message : toSandboxError(error).message;
  const message = JSON.stringify({ jsonrpc: "2.0", error: { code: -32_000, message: text } });
  // What is left of the request is not read.
  response.writeHead(status, { "content-type": "application/json", connection: "close", ...headers });
  response.end(message);
}

async function listen(server: Server, port: number, host: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  }).catch((error: NodeJS.ErrnoException) => {
    const code = error.code === "EADDRINUSE" ? "conflict" : toSandboxError(error).code;
    throw new SandboxError(code, `Can't listen on ${host}:${port}: ${error.message}`, {
      cause: error,
      hint: "choose another port, or 0 for any that is free",
    });
  });
}
