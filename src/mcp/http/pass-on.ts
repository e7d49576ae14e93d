import type { IncomingMessage, ServerResponse } from "node:http";

/** Answers a request of Node with a web response. A client that goes away aborts the web request. */
export async function passOn(
  fetch: (request: Request) => Promise<Response>,
  request: IncomingMessage,
  body: Buffer,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  const leave = (): void => gone.abort();
  response.once("close", leave);
  const answer = await fetch(toWeb(request, body, gone.signal)).catch(() => new Response(null, { status: 500 }));
  const headers = Object.fromEntries(answer.headers);
  response.writeHead(answer.status, headers);
  // What is streamed may have nothing to say for a while.
  if (headers["content-type"] === "text/event-stream") response.flushHeaders();
  const left = new Promise<void>((resolve) => gone.signal.addEventListener("abort", () => resolve(), { once: true }));
  const reader = answer.body?.getReader();
  for (;;) {
    const part = await Promise.race([reader?.read(), left]).catch(() => undefined);
    if (part === undefined || part.done) break;
    if (!response.write(part.value)) {
      await Promise.race([new Promise<void>((resolve) => response.once("drain", resolve)), left]);
    }
  }
  if (gone.signal.aborted) await reader?.cancel().catch(() => undefined);
  response.off("close", leave);
  response.end();
}

function toWeb(request: IncomingMessage, body: Buffer, signal: AbortSignal): Request {
  const { method = "GET", headers, url = "/" } = request;
  const sent = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    // The token is of no further use, and must not get into what others see.
    if (value === undefined || name === "authorization") continue;
    for (const each of [value].flat()) sent.append(name, each);
  }
  const hasBody = method !== "GET" && method !== "HEAD" && body.length > 0;
  return new Request(`http://${headers.host ?? "localhost"}${url}`, {
    method,
    headers: sent,
    signal,
    ...(hasBody && { body: new Uint8Array(body) }),
  });
}
