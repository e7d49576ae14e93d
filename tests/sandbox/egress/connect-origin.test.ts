import { once } from "node:events";
import { connect } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connectOrigin } from "../../../src/sandbox/egress/inspect/connect-origin.js";
import { Lifetime } from "../../../src/sandbox/egress/lifetime.js";
import { createCertificate } from "../../support/egress/certificate.js";
import { listen } from "../../support/egress/running-proxy.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

const [ADDRESS, NAME] = ["127.0.0.1", "origin.test"];
let scratch: Scratch;

beforeAll(() => {
  scratch = createScratch();
});
afterAll(() => scratch.remove());

/** The name in the hello to a host whose certificate is for these names; undefined if it had none. */
async function helloTo(host: string, names: readonly string[]): Promise<string | undefined> {
  const certificate = createCertificate(scratch.path, names);
  const server = createServer({ ...certificate, ALPNProtocols: ["http/1.1"] });
  const port = await listen(server);
  const life = new Lifetime(10_000);
  const taken = once(server, "secureConnection") as Promise<[TLSSocket]>;
  taken.catch(() => undefined);
  try {
    const dial = async (): Promise<ReturnType<typeof connect>> => connect(port, "127.0.0.1");
    const route = { dial, ca: [certificate.cert.toString()], timeout: 10_000 };
    const socket = await connectOrigin({ kind: "request", host, port, path: "/" }, route, life, "http/1.1");
    const [received] = await taken;
    // Node gives false where a hello has none.
    const name = (received as { servername?: string | false }).servername || undefined;
    socket.destroy();
    return name;
  } finally {
    life.end();
    server.close();
  }
}

test("a host is named in the hello, and an address is not", async () => {
  const warnings: string[] = [];
  const warn = ({ message }: Error): void => void warnings.push(message);
  process.on("warning", warn);
  expect(await helloTo(NAME, [NAME])).toBe(NAME);
  expect(await helloTo(ADDRESS, [ADDRESS])).toBeUndefined();
  await new Promise(setImmediate);
  process.off("warning", warn);
  expect(warnings).toEqual([]);
});

test.each([
  [NAME, ["other.test"]],
  [NAME, [ADDRESS]],
  [ADDRESS, [NAME]],
  [ADDRESS, ["127.0.0.2"]],
])("%s is not reached with the certificate of %s", async (host, names) => {
  await expect(helloTo(host, names)).rejects.toMatchObject({
    status: 502,
    message: expect.stringContaining("ERR_TLS_CERT_ALTNAME_INVALID"),
  });
});
