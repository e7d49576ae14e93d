import { execFileSync, spawn } from "node:child_process";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname } from "node:path";

/** A remote that speaks git over HTTP on this machine. */
export interface GitServer {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string;
  /** Every request, with what it was authorised by. */
  readonly requests: { method: string; url: string; authorization: string | undefined }[];
  close(): Promise<void>;
}

/** What a server does instead of serving; true when it has answered. */
export type Trick = (request: IncomingMessage, response: ServerResponse) => boolean;

let backend: string | undefined;

/** Serves the repositories below a directory to whoever has the token; public ones can be read by everybody. */
export async function serveGit(
  root: string,
  token: string,
  trick: Trick = () => false,
  isPublic = false,
): Promise<GitServer> {
  backend ??= `${execFileSync("git", ["--exec-path"]).toString().trim()}/git-http-backend`;
  const program = backend;
  return await listen((request, response) => {
    if (trick(request, response)) return;
    // GitHub looks at the token; these two are the names that are used with it.
    const users = ["x-access-token", "git"].map(
      (user) => `Basic ${Buffer.from(`${user}:${token}`).toString("base64")}`,
    );
    const isRead = isPublic && request.url?.includes("git-upload-pack") === true;
    if (!isRead && !users.includes(request.headers.authorization ?? "")) {
      response.writeHead(401, { "WWW-Authenticate": 'Basic realm="git"' }).end();
      return;
    }
    const url = new URL(request.url ?? "/", "http://localhost");
    const env: Record<string, string> = {
      PATH: process.env["PATH"] ?? "",
      HOME: dirname(root),
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      REQUEST_METHOD: request.method ?? "",
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      CONTENT_TYPE: request.headers["content-type"] ?? "",
      REMOTE_USER: "x-access-token",
    };
    const encoding = request.headers["content-encoding"];
    if (encoding !== undefined) env["HTTP_CONTENT_ENCODING"] = encoding;
    const version = request.headers["git-protocol"];
    if (typeof version === "string") env["GIT_PROTOCOL"] = version;
    const child = spawn(program, [], { env, stdio: ["pipe", "pipe", "ignore"] });
    request.pipe(child.stdin);
    const said: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => said.push(chunk));
    child.on("close", () => {
      const all = Buffer.concat(said);
      const end = all.indexOf("\r\n\r\n");
      let status = 200;
      for (const line of all.toString("latin1", 0, end).split("\r\n")) {
        const [name = "", value = ""] = line.split(": ");
        if (name === "Status") status = Number.parseInt(value, 10);
        else response.setHeader(name, value);
      }
      response.writeHead(status).end(all.subarray(end + 4));
    });
  });
}

/** A server that nobody should ever talk to. It asks for a password, to see whether it gets one. */
export async function serveEvil(): Promise<GitServer> {
  return await listen((_, response) => {
    response.writeHead(401, { "WWW-Authenticate": 'Basic realm="evil"' }).end();
  });
}

async function listen(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<GitServer> {
  const requests: GitServer["requests"] = [];
  const server: Server = createServer((request, response) => {
    const { method = "", url = "", headers } = request;
    requests.push({ method, url, authorization: headers.authorization });
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
