import { Duplex } from "node:stream";
import { type SecureContext, TLSSocket } from "node:tls";
import type { ClientStream } from "../client-stream.js";
import type { EgressConnection } from "../connection.js";
import type { Lifetime } from "../lifetime.js";

/** Requests are read by one strict parser of ours, which knows HTTP/1.1. A program that wants nothing else is told so by TLS itself. */
const PROTOCOLS = ["http/1.1"];

/** Answers the TLS hello of a program in the place of the server it asked for, and gives what it sends inside. */
export async function endTls(
  client: ClientStream,
  life: Lifetime,
  secureContext: SecureContext,
  timeout: number,
): Promise<EgressConnection> {
  const socket = new TLSSocket(asDuplex(client), { isServer: true, secureContext, ALPNProtocols: PROTOCOLS });
  life.onEnd(() => socket.destroy());
  const secured = new Promise<void>((resolve, reject) => {
    socket.once("secure", resolve);
    socket.once("error", reject);
    const cut = (): void => reject(Object.assign(new Error("the program closed it"), { code: "ECONNRESET" }));
    // After an end in the handshake it would wait for more, and not close.
    socket.once("end", cut).once("close", cut);
  });
  await life.within(secured, timeout, () => new Error("the TLS handshake took too long"));
  socket.on("error", () => undefined); // the next read or write fails
  return {
    input: socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>,
    write: (chunk) =>
      new Promise((resolve, reject) => {
        socket.write(chunk, (error) => (error ? reject(error) : resolve()));
      }),
    end: () =>
      new Promise((resolve) => {
        socket.end(resolve);
      }),
    destroy: () => socket.destroy(),
  };
}

/** What the TLS code of Node works on. It ends with the lifetime of the connection, which is not its own to end. */
function asDuplex(client: ClientStream): Duplex {
  return new Duplex({
    read() {
      client.read().then(
        (chunk) => this.push(chunk ?? null),
        (error: Error) => this.destroy(error),
      );
    },
    write(chunk: Buffer, _encoding, done) {
      client.write(chunk).then(() => done(), done);
    },
    final(done) {
      client.end().then(() => done(), done);
    },
  });
}
