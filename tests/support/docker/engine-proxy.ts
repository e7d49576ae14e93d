import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";

/** A request to an engine. */
export interface EngineRequest {
  readonly method: string;
  readonly path: string;
  readonly body: Buffer;
}

/** What becomes of a request: it is passed on, perhaps changed, or answered here. */
export type EngineReply = EngineRequest | { readonly status: number; readonly answer: string };

/** A way to a real engine that may change or answer each request. */
export async function startEngineProxy(
  host: string,
  folder: string,
  change: (request: EngineRequest) => EngineReply,
): Promise<{ host: string; close(): void }> {
  const socketPath = host.replace("unix://", "");
  const server = createServer((asked, answer) => {
    forward(asked, answer, socketPath, change).catch(() => answer.destroy());
  });
  server.on("upgrade", ({ method, url, headers }, near, head) => {
    const far = connect(socketPath);
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}\r\n`);
    far.write(`${method} ${url} HTTP/1.1\r\n${lines.join("")}\r\n`);
    far.write(head);
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) socket.on("error", () => [near, far].map((each) => each.destroy()));
  });
  const own = join(folder, "proxy.sock");
  await new Promise<void>((resolve) => {
    server.listen(own, resolve);
  });
  return {
    host: `unix://${own}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function forward(
  asked: IncomingMessage,
  answer: ServerResponse,
  socketPath: string,
  change: (request: EngineRequest) => EngineReply,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of asked) chunks.push(chunk as Buffer);
  const { method = "GET", url = "/", headers } = asked;
  const reply = change({ method, path: url, body: Buffer.concat(chunks) });
  if ("status" in reply) return void answer.writeHead(reply.status).end(reply.answer);
  const { path, body } = reply;
  const { "transfer-encoding": _, ...own } = headers;
  const onward = request({ socketPath, method, path, headers: { ...own, "content-length": body.length } }, (from) => {
    answer.writeHead(from.statusCode ?? 500, from.headers);
    from.pipe(answer);
  });
  onward.end(body);
}
