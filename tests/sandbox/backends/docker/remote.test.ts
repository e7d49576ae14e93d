import { copyFileSync, mkdirSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { createServer as createSecureServer } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findEndpoint } from "../../../../src/sandbox/backends/docker/engine/endpoint.js";
import { Engine } from "../../../../src/sandbox/backends/docker/engine/engine.js";
import { createDockerSandbox } from "../../../../src/sandbox/backends/docker.js";
import type { DockerOptions } from "../../../../src/sandbox/docker.js";
import { describeUnless } from "../../../support/describe-unless.js";
import { BUSYBOX, useEngine, whyNoDocker } from "../../../support/docker/engine.js";
import { createCertificate } from "../../../support/egress/certificate.js";
import { SET_UP_LIMIT } from "../../../support/run/set-up-limit.js";
import { createScratch } from "../../../support/scratch.js";

const reason = whyNoDocker(BUSYBOX);
const scratch = createScratch();
const open: Server[] = [];
const sockets = new Set<Socket>();

/** A real engine behind another door: what arrives goes to its socket, byte by byte. */
async function doorTo(host: string, make: (onConnection: (socket: Socket) => void) => Server): Promise<number> {
  const server = make((socket) => {
    const inner = connect(host.slice("unix://".length));
    for (const each of [socket, inner]) {
      sockets.add(each);
      each.on("error", () => undefined);
    }
    socket.pipe(inner).pipe(socket);
    socket.on("close", () => inner.destroy());
    inner.on("close", () => socket.destroy());
  });
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

describeUnless(reason, "an engine elsewhere", {}, () => {
  let host: string;
  beforeAll(async () => {
    host = await useEngine(BUSYBOX);
  }, SET_UP_LIMIT);
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    for (const server of open) server.close();
    scratch.remove();
  });

  const works = async (docker: DockerOptions): Promise<void> => {
    await using sandbox = await createDockerSandbox({ image: BUSYBOX, docker });
    const bytes = Buffer.alloc(3 << 20, "€uro");
    const copied = await sandbox.exec({ argv: ["cat"], stdin: bytes, raw: true, maxOutput: 8 << 20 });
    expect(bytes.equals(copied.raw?.stdout ?? bytes.subarray(1))).toBe(true);
    expect((await sandbox.shell("sleep 60", { timeout: 300 })).timedOut).toBe(true);
  };

  test("is used over tcp, with the guest in a volume", async () => {
    const port = await doorTo(host, createServer);
    await works({ host: `tcp://127.0.0.1:${port}` });
  });

  test("is used over TLS with the certificates of both, and not without", async () => {
    const folder = join(scratch.path, "certificates");
    mkdirSync(folder);
    const { key, cert } = createCertificate(folder, ["localhost"]);
    copyFileSync(join(folder, "cert.pem"), join(folder, "ca.pem"));
    const options = { key, cert, ca: cert, requestCert: true, rejectUnauthorized: true };
    const port = await doorTo(host, (onConnection) => createSecureServer(options, onConnection) as unknown as Server);
    await works({ host: `tcp://localhost:${port}`, certPath: folder });

    const nobody = join(scratch.path, "nothing");
    mkdirSync(nobody);
    const stranger = new Engine(findEndpoint({ host: `tcp://localhost:${port}`, certPath: nobody }));
    await expect(stranger.call("GET", "/_ping")).rejects.toMatchObject({ code: "unauthenticated" });
  });

  test("that is slow to answer is unavailable, one that hangs up is lost", async () => {
    const port = await doorTo(host, () => createServer(() => undefined));
    const slow = new Engine(findEndpoint({ host: `tcp://127.0.0.1:${port}` }));
    await expect(slow.call("GET", "/_ping", { timeout: 200 })).rejects.toMatchObject({ code: "unavailable" });
    const rude = await doorTo(host, () => createServer((socket) => socket.destroy()));
    const gone = new Engine(findEndpoint({ host: `tcp://127.0.0.1:${rude}` }));
    await expect(gone.call("GET", "/_ping")).rejects.toMatchObject({ code: "backend_lost" });
    await expect(gone.call("GET", "/_ping", { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: "aborted",
    });
  });
});
