import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";

/** An answer that is an error; thrown anywhere below a handler. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string | undefined;

  constructor(status: number, message: string, code?: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** What a handler works with. */
export interface Exchange {
  readonly method: string;
  /** Without the prefix that led to the handler. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Answers with JSON. */
export function json(response: ServerResponse, status: number, body?: unknown): void {
  if (body === undefined) {
    response.writeHead(status).end();
    return;
  }
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}

/** Answers with an error as the API or a daemon words it. */
export function refuse(response: ServerResponse, error: unknown, source: "api" | "daemon", path: string): void {
  const { status, code, message } = error instanceof Refusal ? error : new Refusal(500, String(error));
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const common = { statusCode: status, message, path, timestamp: new Date().toISOString() };
  json(
    response,
    status,
    source === "api"
      ? { ...common, error: STATUS_CODES[status] ?? "Error" }
      : { ...common, method: response.req.method, ...(code && { code, source: "DAYTONA_DAEMON" }) },
  );
}

/** The body of a request, whole. */
export async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** The body of a request as an object. */
export async function objectOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const text = (await bodyOf(request)).toString("utf8");
  if (text === "") return {};
  // The daemon takes a body for what it should be; the API reads none that does not say so.
  const isSaid = /^application\/json\b/.test(request.headers["content-type"] ?? "");
  if (!isSaid && request.url?.startsWith("/api/") === true) throw new Refusal(400, "the body is not JSON");
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new Refusal(400, "the body is malformed");
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) throw new Refusal(400, "the body is no object");
  return body as Record<string, unknown>;
}

/** A field that must be a text. */
export function textOf(body: Record<string, unknown>, name: string): string {
  const value = body[name];
  if (typeof value !== "string" || value === "") throw new Refusal(400, `${name} is required`);
  return value;
}
