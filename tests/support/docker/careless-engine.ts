import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";

/** A way to an engine that ignores limits without a word, as Podman without root does: they are cut out of each request. */
export async function startCarelessEngine(host: string, folder: string): Promise<{ host: string; close(): void }> {
  const socketPath = host.replace("unix://", "");
  const server = createServer((asked, answer) => {
    forward(asked, answer, socketPath).catch(() => answer.destroy());
  });
  server.on("upgrade", ({ method, url, headers }, near, head) => {
    const far = connect(socketPath);
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}\r\n`);
    far.write(`${method} ${url} HTTP/1.1\r\n${lines.join("")}\r\n`);
    far.write(head);
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) socket.on("error", () => [near, far].map((each) => each.destroy()));
  });
  const own = join(folder, "careless.sock");
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

async function forward(asked: IncomingMessage, answer: ServerResponse, socketPath: string): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of asked) chunks.push(chunk as Buffer);
  let body = Buffer.concat(chunks);
  if (asked.url?.startsWith("/containers/create")) {
    const config = JSON.parse(body.toString()) as { HostConfig: Record<string, unknown> };
    for (const name of ["Memory", "MemorySwap", "PidsLimit"]) delete config.HostConfig[name];
    body = Buffer.from(JSON.stringify(config));
  }
  const { method, url: path, headers } = asked;
  const { "transfer-encoding": _, ...own } = headers;
  const onward = request({ socketPath, method, path, headers: { ...own, "content-length": body.length } }, (from) => {
    answer.writeHead(from.statusCode ?? 500, from.headers);
    from.pipe(answer);
  });
  onward.end(body);
}
