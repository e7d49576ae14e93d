import { createServer, type Server, type Socket } from "node:net";
import { SandboxError } from "../../../contracts/errors.js";

/** How often another port is tried when the first one is taken on the second address. */
const ATTEMPTS = 32;
/** The machine has no IPv6, or none on its loopback. */
const NO_IPV6: readonly (string | undefined)[] = ["EAFNOSUPPORT", "EADDRNOTAVAIL", "EINVAL"];

/** A listener on both loopback addresses of this machine. */
export interface LoopbackListener {
  readonly port: number;
  /** Accepts nothing more. Connections that were accepted stay. */
  close(): void;
}

/** Listens on 127.0.0.1 and ::1 at one random port. The listener alone does not keep the process alive. */
export async function listenOnLoopback(take: (socket: Socket) => void): Promise<LoopbackListener> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const four = await listen(0, "127.0.0.1", take);
    const address = four.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    try {
      const six = await listen(port, "::1", take).catch((error: NodeJS.ErrnoException) => {
        if (NO_IPV6.includes(error.code)) return undefined;
        throw error;
      });
      return {
        port,
        close() {
          four.close();
          six?.close();
        },
      };
    } catch (error) {
      four.close();
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    }
  }
  throw new SandboxError(
    "unavailable",
    `No port of this machine is free on both 127.0.0.1 and ::1 (${ATTEMPTS} tried)`,
  );
}

/** Sockets are paused: nothing is read before it is known whose they are. */
function listen(port: number, host: string, take: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, take);
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host, exclusive: true }, () => {
      server.off("error", reject);
      // Out of descriptors: that connection is lost, and the next one may be accepted.
      server.on("error", () => undefined);
      server.unref();
      resolve(server);
    });
  });
}
