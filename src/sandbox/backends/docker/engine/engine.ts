import {
  Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import { request as httpsRequest, Agent as SecureAgent } from "node:https";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { SandboxError, type SandboxErrorCode } from "../../../../../contracts/errors.js";
import { CallDeadline } from "../../call-deadline.js";
import type { EngineEndpoint } from "./endpoint.js";
import { connectionError, engineError } from "./engine-error.js";

/** Default deadline of an answer, in milliseconds. */
const PATIENCE = 120_000;
const MAX_ANSWER = 64 << 20;
const MAX_ERROR = 64 << 10;

/** One call of the engine's API. */
export interface EngineCall {
  /** Objects are sent as JSON, undefined is left out. */
  query?: Readonly<Record<string, string | number | boolean | object | undefined>>;
  /** Sent as JSON; a stream of bytes as a tar archive. */
  body?: object | AsyncIterable<Uint8Array>;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal | undefined;
  /** Milliseconds until the answer is complete, or until a stream starts. Default two minutes. */
  timeout?: number;
}

/** A client of the engine's API: calls, streams, and connections that become a raw stream. */
export class Engine {
  readonly endpoint: EngineEndpoint;
  readonly #agent: Agent;
  readonly #options: RequestOptions;

  constructor(endpoint: EngineEndpoint) {
    this.endpoint = endpoint;
    const { socketPath, host, port, tls } = endpoint;
    const settings = { keepAlive: true, maxFreeSockets: 8 };
    this.#agent = tls
      ? new SecureAgent({
          ...settings,
          rejectUnauthorized: tls.verify,
          ...(tls.ca && { ca: tls.ca }),
          ...(tls.cert && { cert: tls.cert }),
          ...(tls.key && { key: tls.key }),
        })
      : new Agent(settings);
    this.#options = socketPath === undefined ? { host, port } : { socketPath };
  }

  /** Closes idle connections. Calls in progress continue. */
  close(): void {
    this.#agent.destroy();
  }

  /** Makes a call and returns its answer, parsed as JSON; undefined when it is empty. */
  async call<T>(method: string, path: string, call: EngineCall = {}): Promise<T> {
    return await this.#inTime(`${method} ${path}`, call, async (deadline) => {
      const answer = await this.#send(method, path, call, deadline.signal);
      const text = await readText(answer, MAX_ANSWER);
      deadline.clear();
      return (text === "" ? undefined : JSON.parse(text)) as T;
    });
  }

  /** Makes a call whose answer is a stream. The caller reads it to its end or destroys it. */
  async stream(method: string, path: string, call: EngineCall = {}): Promise<IncomingMessage> {
    return await this.#inTime(`${method} ${path}`, call, async (deadline) => {
      const answer = await this.#send(method, path, call, deadline.signal);
      deadline.started();
      answer.once("close", () => deadline.clear());
      return answer;
    });
  }

  /** Opens a connection that becomes a raw stream in both directions. */
  async hijack(path: string, call: EngineCall = {}): Promise<Socket> {
    const what = `POST ${path}`;
    return await this.#inTime(what, call, async (deadline) => {
      const socket = await new Promise<Socket>((resolve, reject) => {
        const headers = { ...call.headers, Connection: "Upgrade", Upgrade: "tcp" };
        const request = this.#request("POST", path, { ...call, headers }, deadline.signal);
        request.on("error", reject);
        request.on("upgrade", (_answer, upgraded: Socket, head: Buffer) => {
          if (head.length > 0) upgraded.unshift(head);
          resolve(upgraded);
        });
        request.on("response", (answer) => {
          if (isSuccess(answer)) {
            answer.destroy();
            reject(new SandboxError("unavailable", `${this.endpoint.name} refuses a raw stream for ${what}`));
          } else {
            failed(answer, what).then(reject, reject);
          }
        });
        send(request, call.body);
      });
      deadline.clear();
      return socket;
    });
  }

  /** Runs a call until its deadline. `work` clears the deadline when it succeeds. */
  async #inTime<T>(what: string, call: EngineCall, work: (deadline: CallDeadline) => Promise<T>): Promise<T> {
    const patience = call.timeout ?? PATIENCE;
    const deadline = new CallDeadline(patience, call.signal, {
      late: () => failure("unavailable", `The Docker engine did not answer ${what} within ${patience} ms`),
      aborted: (cause) => failure("aborted", `${what} was aborted`, cause),
    });
    try {
      return await work(deadline);
    } catch (error) {
      deadline.clear();
      throw deadline.reason() ?? connectionError(error, this.endpoint, what);
    }
  }

  async #send(method: string, path: string, call: EngineCall, signal: AbortSignal): Promise<IncomingMessage> {
    const answer = await this.#answer(method, path, call, signal).catch((error: NodeJS.ErrnoException) => {
      // The engine closed an idle connection just when this call started to use it.
      const mayAgain = error.code === "ECONNRESET" && (error as { reused?: boolean }).reused && call.body === undefined;
      if (!mayAgain || signal.aborted || method === "POST") throw error;
      return this.#answer(method, path, call, signal);
    });
    if (!isSuccess(answer)) throw await failed(answer, `${method} ${path}`);
    return answer;
  }

  #answer(method: string, path: string, call: EngineCall, signal: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = this.#request(method, path, call, signal);
      request.on("response", resolve);
      request.on("error", (error) => reject(Object.assign(error, { reused: request.reusedSocket })));
      send(request, call.body);
    });
  }

  #request(method: string, path: string, call: EngineCall, signal: AbortSignal): ClientRequest {
    const { body } = call;
    const type = body === undefined ? undefined : isBytes(body) ? "application/x-tar" : "application/json";
    const options: RequestOptions = {
      ...this.#options,
      agent: this.#agent,
      method,
      path: path + queryText(call.query),
      signal,
      headers: {
        ...(this.endpoint.socketPath !== undefined && { Host: "docker" }),
        ...(type !== undefined && { "Content-Type": type }),
        ...call.headers,
      },
    };
    return this.endpoint.tls ? httpsRequest(options) : httpRequest(options);
  }
}

function failure(code: SandboxErrorCode, message: string, cause?: unknown): SandboxError {
  return new SandboxError(code, message, { backend: "docker", cause });
}

function isSuccess({ statusCode = 0 }: IncomingMessage): boolean {
  // 304: the container is already in that state.
  return (statusCode >= 200 && statusCode < 300) || statusCode === 304;
}

async function failed(answer: IncomingMessage, what: string): Promise<SandboxError> {
  return engineError(what, answer.statusCode ?? 0, await readText(answer, MAX_ERROR));
}

function isBytes(body: object): body is AsyncIterable<Uint8Array> {
  return Symbol.asyncIterator in body;
}

function send(request: ClientRequest, body: EngineCall["body"]): void {
  if (body === undefined) request.end();
  else if (isBytes(body)) {
    // When the source fails, the request fails with its error.
    pipeline(Readable.from(body), request).catch((error: Error) => request.destroy(error));
  } else request.end(JSON.stringify(body));
}

async function readText(answer: IncomingMessage, most: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > most)
      throw new SandboxError("limit_exceeded", `The Docker engine answered with more than ${most} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function queryText(query: EngineCall["query"]): string {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query ?? {})) {
    if (value !== undefined) parameters.set(key, typeof value === "object" ? JSON.stringify(value) : String(value));
  }
  const text = parameters.toString();
  return text === "" ? "" : `?${text}`;
}
