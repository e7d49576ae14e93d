import type { EgressConnection } from "../connection.js";

const MAX_QUERY = 512;
const MAX_QUERIES = 100;
const IDLE = 10_000;

/** Answers the queries that come by a connection, each after its length. Never throws: a failure ends the connection. */
export async function serveQueries(
  connection: EgressConnection,
  answer: (query: Buffer) => Promise<Buffer | undefined>,
): Promise<void> {
  const idle = setTimeout(() => connection.destroy(), IDLE).unref();
  try {
    let held = Buffer.alloc(0);
    let count = 0;
    for await (const chunk of connection.input) {
      held = Buffer.concat([held, chunk]);
      while (held.length >= 2) {
        const length = held.readUInt16BE(0);
        if (length === 0 || length > MAX_QUERY) throw new Error("no query that is answered");
        if (held.length < 2 + length) break;
        if (++count > MAX_QUERIES) throw new Error("too many queries");
        const reply = await answer(held.subarray(2, 2 + length));
        if (reply === undefined) throw new Error("no query");
        held = held.subarray(2 + length);
        await connection.write(Buffer.concat([Buffer.from([reply.length >> 8, reply.length & 255]), reply]));
        idle.refresh();
      }
    }
    await connection.end();
  } catch {
    // It is cut off below.
  } finally {
    clearTimeout(idle);
    connection.destroy();
  }
}
