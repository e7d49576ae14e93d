import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { makeTrust, type Trust } from "../../../src/sandbox/egress/authority.js";
import { egressInternals } from "../../../src/sandbox/egress/open-egress.js";

/** A server on loopback with the certificates that the proxy would show, which stands for every host of a sandbox's list. */
export interface TrustedServer {
  readonly port: number;
  /** The authorities of the openings since, the newest last. */
  readonly made: readonly Trust[];
  close(): void;
}

/** What the server answers: enough for a git client, too, that asks for the branches of a repository. */
export const GREETING: string = `${"1".repeat(40)}\trefs/heads/hello\n`;

/** Starts it, and has every sandbox that is opened from now on trust an authority for these names. */
export async function startTrustedServer(names: readonly string[]): Promise<TrustedServer> {
  const made: Trust[] = [];
  const server = createServer(
    { SNICallback: (name, done) => done(null, made.at(-1)?.authority.contextFor(name)) },
    (_request, response) => response.setHeader("Content-Type", "text/plain").end(GREETING),
  );
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  egressInternals.trust = () => {
    const trust = makeTrust(names);
    made.push(trust);
    return trust;
  };
  egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: (address) => address === "127.0.0.1" };
  return {
    port: (server.address() as AddressInfo).port,
    made,
    close() {
      server.close();
      server.closeAllConnections();
      delete egressInternals.trust;
      delete egressInternals.route;
    },
  };
}
