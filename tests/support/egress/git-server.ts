import { execFileSync, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import type { Certificate } from "./certificate.js";
import { listen } from "./running-proxy.js";

/** A server on loopback with a git repository at `/org/repo.git`, and an answer for every other path. */
export interface GitServer {
  readonly port: number;
  /** Method and target of each request, in order. */
  readonly requests: string[];
  /** The commits of the repository's branch `main`. */
  commits(): string[];
  close(): void;
}

const ENV = {
  PATH: process.env["PATH"] ?? "",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  ...Object.fromEntries(
    ["AUTHOR", "COMMITTER"].flatMap((who) => [
      [`GIT_${who}_NAME`, "t"],
      [`GIT_${who}_EMAIL`, "t@example.com"],
    ]),
  ),
};

/** Starts it. The repository is made below `folder`, with one commit. Everybody may push. */
export async function startGitServer(folder: string, certificate: Certificate): Promise<GitServer> {
  const bare = join(folder, "org", "repo.git");
  mkdirSync(bare, { recursive: true });
  const git = (...args: string[]): string =>
    execFileSync("git", args, { cwd: bare, env: ENV, encoding: "utf8" }).trim();
  git("init", "-q", "--bare", "-b", "main");
  git("config", "http.receivepack", "true");
  const tree = git("mktree", "--missing");
  git("update-ref", "refs/heads/main", git("commit-tree", tree, "-m", "first"));
  const requests: string[] = [];
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = "", url = "" } = request;
    requests.push(`${method} ${url}`);
    if (!url.startsWith("/org/repo.git/")) {
      request.resume();
      response.end(`${method} ${url}\n`);
      return;
    }
    await serveGit(folder, request, response);
  };
  const server = createServer(certificate, (request, response) => void serve(request, response));
  server.on("tlsClientError", () => undefined);
  return {
    port: await listen(server),
    requests,
    commits: () => git("log", "--format=%s", "main").split("\n"),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Answers a request by git's own `http-backend`. */
export async function serveGit(root: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, search } = new URL(request.url ?? "", "https://localhost");
  const { headers, method } = request;
  const child = spawn("git", ["http-backend"], {
    env: {
      ...ENV,
      REMOTE_USER: "somebody",
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      PATH_INFO: pathname,
      QUERY_STRING: search.slice(1),
      REQUEST_METHOD: method,
      CONTENT_TYPE: headers["content-type"] ?? "",
      HTTP_CONTENT_ENCODING: String(headers["content-encoding"] ?? ""),
      GIT_PROTOCOL: String(headers["git-protocol"] ?? ""),
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
  request.pipe(child.stdin);
  const answer = await buffer(child.stdout);
  const end = answer.indexOf("\r\n\r\n");
  const lines = answer.subarray(0, end).toString("latin1").split("\r\n");
  for (const line of lines) {
    const [name = "", value = ""] = line.split(/: */, 2);
    if (name === "Status") response.statusCode = Number(value.slice(0, 3));
    else response.setHeader(name, value);
  }
  response.end(answer.subarray(end + 4));
}
