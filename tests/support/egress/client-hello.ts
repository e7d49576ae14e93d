import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { connect } from "node:tls";
import { listen } from "./running-proxy.js";

/** The first bytes that Node's TLS sends, with this server name or without one. */
export async function helloFor(servername: string | undefined): Promise<Buffer> {
  const server = createServer();
  const port = await listen(server);
  const tls = connect({ port, host: "127.0.0.1", ...(servername !== undefined && { servername }) });
  tls.on("error", () => undefined);
  const [socket] = (await once(server, "connection")) as [Socket];
  const [hello] = (await once(socket, "data")) as [Buffer];
  tls.destroy();
  socket.destroy();
  server.close();
  return hello;
}

/** The same hello in records of few bytes. */
export function inPieces(hello: Buffer, size: number): Buffer {
  const body = hello.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0; at < body.length; at += size) {
    const piece = body.subarray(at, at + size);
    records.push(Buffer.from([22, 3, 1, piece.length >> 8, piece.length & 255]), piece);
  }
  return Buffer.concat(records);
}

/** The same hello, in one record, with more extensions at its end. */
export function withExtensions(hello: Buffer, extensions: readonly (readonly [type: number, body: Buffer])[]): Buffer {
  const body = Buffer.from(hello.subarray(9));
  // version and random, then session, cipher suites and compressions, each after its length
  let at = 34;
  at += 1 + body.readUInt8(at);
  at += 2 + body.readUInt16BE(at);
  at += 1 + body.readUInt8(at);
  const added = extensions.map(([type, content]) =>
    Buffer.concat([number(type, 2), number(content.length, 2), content]),
  );
  const all = Buffer.concat([body.subarray(at + 2), ...added]);
  const message = Buffer.concat([body.subarray(0, at), number(all.length, 2), all]);
  const handshake = Buffer.concat([Buffer.from([1]), number(message.length, 3), message]);
  return Buffer.concat([Buffer.from([22, 3, 1]), number(handshake.length, 2), handshake]);
}

/** The extension of a server name; more names than one make it odd. */
export function serverName(...names: string[]): Buffer {
  const list = Buffer.concat(
    names.map((name) => Buffer.concat([Buffer.from([0]), number(name.length, 2), Buffer.from(name)])),
  );
  return Buffer.concat([number(list.length, 2), list]);
}

function number(value: number, width: number): Buffer {
  const bytes = Buffer.alloc(width);
  bytes.writeUIntBE(value, 0, width);
  return bytes;
}
