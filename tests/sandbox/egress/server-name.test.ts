import { createServer as createTcpServer } from "node:net";
import { describe, expect, test } from "vitest";
import { helloFor, inPieces } from "../../support/egress/client-hello.js";
import { listen, startProxy, statusOf, talk } from "../../support/egress/running-proxy.js";

const NAME = "allowed.test";

describe("[N-NET-04] a name in a TLS hello that is not the tunnel's", () => {
  /** Sends bytes through a tunnel to a server that only counts, and gives what it got. */
  const tunnelled = async (bytes: Buffer): Promise<{ got: Buffer; blocked: unknown[]; status: number | undefined }> => {
    const got: Buffer[] = [];
    const server = createTcpServer((socket) => {
      socket.on("data", (chunk) => got.push(chunk));
      socket.on("error", () => undefined);
    });
    const port = await listen(server);
    await using own = await startProxy([`${NAME}:${port}`], { names: { [NAME]: "127.0.0.1" } });
    const head = Buffer.from(`CONNECT ${NAME}:${port} HTTP/1.1\r\n\r\n`);
    const answer = await talk(own.port, Buffer.concat([head, bytes]));
    server.close();
    return {
      got: Buffer.concat(got),
      blocked: own.blocked.map(({ host, reason }) => ({ host, reason })),
      status: statusOf(answer),
    };
  };

  test.each([
    ["whole", 0],
    ["in records of 100 bytes", 100],
    ["in records of one byte", 1],
  ])("is cut off before a byte of it gets out, %s", async (_how, size) => {
    const hello = await helloFor("evil.test");
    const result = await tunnelled(size === 0 ? hello : inPieces(hello, size));
    expect(result).toEqual({
      got: Buffer.alloc(0),
      blocked: [{ host: "evil.test", reason: "name_mismatch" }],
      status: 200,
    });
  });

  test.each([
    ["its own name", NAME],
    ["its own name in capitals", NAME.toUpperCase()],
    ["its own name with a final dot", `${NAME}.`],
  ])("and %s passes", async (_how, name) => {
    const hello = await helloFor(name);
    const pieces = inPieces(hello, 50);
    expect((await tunnelled(hello)).got).toEqual(hello);
    expect(await tunnelled(pieces)).toEqual({ got: pieces, blocked: [], status: 200 });
  });

  test("and a hello that cannot be read is cut off", async () => {
    const hello = await helloFor(NAME);
    const broken = Buffer.from(hello);
    broken.fill(0xff, 60);
    const notAHello = Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0]);
    const interrupted = Buffer.concat([inPieces(hello, 50).subarray(0, 55), Buffer.from([23, 3, 3, 0, 1, 0])]);
    const endless = Buffer.concat(
      Array<Buffer>(5).fill(
        inPieces(Buffer.concat([Buffer.from([0, 0, 0, 0, 0, 1, 255, 255, 255]), Buffer.alloc(16_000)]), 16_009),
      ),
    );
    const followed = (extra: number): Buffer => {
      const body = Buffer.concat([hello.subarray(5), Buffer.alloc(extra, 1)]);
      return Buffer.concat([hello.subarray(0, 3), Buffer.from([body.length >> 8, body.length & 255]), body]);
    };
    expect((await tunnelled(followed(0))).got).toEqual(hello);
    for (const bytes of [broken, notAHello, interrupted, endless, followed(4)]) {
      expect(await tunnelled(bytes)).toMatchObject({ got: Buffer.alloc(0), blocked: [{ reason: "name_mismatch" }] });
    }
  });
});
