import { Duplex } from "node:stream";
import { type SecureContext, TLSSocket } from "node:tls";
import type { ClientStream } from "../client-stream.js";
import type { EgressConnection } from "../connection.js";
import type { Lifetime } from "../lifetime.js";

/** The first that a program offers, too. HTTP/2 is for those that speak nothing else, so most requests go through one strict parser of ours. */
const PROTOCOLS = ["http/1.1", "h2"];

/** Bytes of an answer that wait for a program to read. */
const UNDER_WAY = 256 << 10;

/** Answers the TLS hello of a program in the place of the server it asked for. */
export async function endTls(
  client: ClientStream,
  life: Lifetime,
  secureContext: SecureContext,
  timeout: number,
): Promise<TLSSocket> {
  const options = { isServer: true, secureContext, ALPNProtocols: PROTOCOLS, highWaterMark: UNDER_WAY };
  const socket = new TLSSocket(asDuplex(client), options);
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
  return socket;
}

/** What a program sends inside TLS, and the way back. */
export function insideTls(socket: TLSSocket): EgressConnection {
  return {
    input: socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>,
    // While there is room, the next chunk is not kept waiting for this one: those that come meanwhile are encrypted and sent together.
    write: (chunk) =>
      new Promise((resolve, reject) => {
        if (socket.write(chunk, (error) => (error ? reject(error) : resolve()))) resolve();
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
    writev(chunks, done) {
      client.write(Buffer.concat(chunks.map(({ chunk }) => chunk as Buffer))).then(() => done(), done);
    },
    final(done) {
      client.end().then(() => done(), done);
    },
  });
}
