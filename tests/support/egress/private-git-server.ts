import { createServer } from "node:https";
import { egressInternals } from "../../../src/sandbox/egress/open-egress.js";
import { createCertificate } from "./certificate.js";
import { serveGit } from "./git-server.js";
import { listen } from "./running-proxy.js";

/** A server of git repositories that asks for a user and a token. */
export interface PrivateGitServer {
  readonly port: number;
  /** The Authorization headers that came. */
  readonly authorizations: string[];
  close(): void;
}

/** Serves the repositories in a folder by git's own `http-backend`, and has every sandbox reach it by this name. */
export async function startPrivateGitServer(
  directory: string,
  name: string,
  opts: { root: string; user: string; token: string },
): Promise<PrivateGitServer> {
  const certificate = createCertificate(directory, [name]);
  const wanted = `Basic ${Buffer.from(`${opts.user}:${opts.token}`).toString("base64")}`;
  const authorizations: string[] = [];
  const server = createServer(certificate, (request, response) => {
    const { authorization } = request.headers;
    if (authorization !== undefined) authorizations.push(authorization);
    if (authorization === wanted) void serveGit(opts.root, request, response).catch(() => response.destroy());
    else response.writeHead(401, { "WWW-Authenticate": 'Basic realm="git"' }).end();
  });
  server.on("tlsClientError", () => undefined);
  const port = await listen(server);
  egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: (address) => address === "127.0.0.1" };
  egressInternals.ca = [certificate.cert.toString()];
  return {
    port,
    authorizations,
    close() {
      server.close();
      server.closeAllConnections();
      delete egressInternals.route;
      delete egressInternals.ca;
    },
  };
}
