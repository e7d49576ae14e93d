import type { IncomingMessage, ServerResponse } from "node:http";

/** What a page may read of an answer, beside its body. */
const EXPOSED = "mcp-session-id, www-authenticate, retry-after";
const REMEMBERED = 600;

/** Lets the page that a request comes from read the answer; its origin was checked before. */
export function letPageRead({ headers: { origin } }: IncomingMessage, response: ServerResponse): void {
  if (origin === undefined) return;
  response.setHeader("access-control-allow-origin", origin);
  response.setHeader("access-control-expose-headers", EXPOSED);
  response.setHeader("vary", "origin");
}

/** Whether a browser only asks what a page may send; it asks without the page's token. */
export function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === "OPTIONS" && headers.origin !== undefined && headers["access-control-request-method"] !== undefined;
}

/** Answers a browser that a page may send its requests. */
export function answerPreflight({ headers }: IncomingMessage, response: ServerResponse): void {
  const wanted = headers["access-control-request-headers"];
  response.setHeader("access-control-allow-methods", "GET, POST, DELETE");
  if (wanted !== undefined) response.setHeader("access-control-allow-headers", wanted);
  // A page of the internet that the user allowed may reach this machine.
  if (headers["access-control-request-private-network"] === "true") {
    response.setHeader("access-control-allow-private-network", "true");
  }
  response.setHeader("access-control-max-age", REMEMBERED);
  response.writeHead(204).end();
}
