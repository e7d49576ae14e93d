import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { execInPod, type PodStream } from "../../../../src/sandbox/backends/kubernetes/client/pod-exec.js";
import {
  encodeClientFrame,
  ServerFrameReader,
} from "../../../../src/sandbox/backends/kubernetes/client/web-socket-frames.js";
import { acceptExec, type ExecPeer, serverFrame, unmask } from "../../../support/kubernetes/exec-peer.js";
import { failure, type ScriptedApi, startScriptedApi } from "../../../support/kubernetes/scripted-api.js";
import { expectRefused } from "../../../support/refused.js";

const V4 = "v4.channel.k8s.io";
const V5 = "v5.channel.k8s.io";
const command = { namespace: "team", pod: "p", container: "sandbox", argv: ["/guest", "relay it"] };

async function start(protocol: string): Promise<{ api: ScriptedApi; stream: PodStream; peer: ExecPeer }> {
  const api = await startScriptedApi((_request, response) => failure(response, 404, "NotFound", 'pods "p" not found'));
  const accepted = new Promise<ExecPeer>((resolve) => {
    api.onUpgrade = (request, socket) => resolve(acceptExec(request, socket, protocol));
  });
  const stream = await execInPod(api.client(), command);
  return { api, stream, peer: await accepted };
}

async function readAll(stream: PodStream): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of stream as AsyncIterable<Buffer>) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8");
}

describe("an exec", () => {
  test.each([V4, V5])("has output, errors and an exit code: %s", async (protocol) => {
    const { api, stream, peer } = await start(protocol);
    await using _ = api;
    const { url, headers } = api.seen[0] ?? { url: "", headers: {} };
    expect(url).toBe(
      "/api/v1/namespaces/team/pods/p/exec?container=sandbox&command=%2Fguest&command=relay+it&stdin=true&stdout=true&stderr=true&tty=false",
    );
    expect(headers["sec-websocket-protocol"]).toBe("v5.channel.k8s.io, v4.channel.k8s.io");
    for (const channel of [1, 2, 3]) peer.say(channel, "");
    peer.say(1, "out");
    peer.say(2, "complaint");
    peer.say(1, "put");
    peer.exit(7);
    expect(await readAll(stream)).toBe("output");
    expect([stream.complaint, await stream.exitCode]).toEqual(["complaint", 7]);
  });

  test.each([
    ["in good order", (peer: ExecPeer) => peer.close(1000)],
    ["without a word", (peer: ExecPeer) => void peer.socket.destroy()],
    [
      "in the middle of a frame",
      (peer: ExecPeer) => void peer.socket.end(serverFrame(2, Buffer.from("\x01abc")).subarray(0, 4)),
    ],
  ])("that is closed %s but without a status has failed, whatever it wrote", async (_, end) => {
    const { api, stream, peer } = await start(V5);
    await using __ = api;
    const reading = readAll(stream);
    peer.say(1, "all is well");
    end(peer);
    await expectRefused(stream.exitCode, "unavailable", "lost");
    await expectRefused(reading, "unavailable", "lost");
  });

  test("reports what the cluster could not run", async () => {
    const { api, stream, peer } = await start(V4);
    await using _ = api;
    const message = 'exec: "/guest": stat /guest: no such file or directory';
    stream.on("error", () => undefined);
    peer.say(3, JSON.stringify({ status: "Failure", reason: "InternalError", message }));
    peer.close(1000);
    await expectRefused(stream.exitCode, "not_found", message);
  });

  test("closes the program's stdin alone with version 5, and can't with version 4", async () => {
    for (const protocol of [V4, V5]) {
      const { api, stream, peer } = await start(protocol);
      await using _ = api;
      stream.end("last");
      await expect.poll(() => peer.frames.length).toBe(protocol === V5 ? 2 : 1);
      expect(peer.frames.map(({ payload }) => [...payload.subarray(0, 2)])[1]).toEqual(
        protocol === V5 ? [255, 0] : undefined,
      );
      expect(stream.canHalfClose).toBe(protocol === V5);
      peer.exit(0);
      expect(await stream.exitCode).toBe(0);
    }
  });

  test("sends large writes as messages that every server takes", async () => {
    const { api, stream, peer } = await start(V5);
    await using _ = api;
    const sent = randomBytes(3 << 20);
    stream.write(sent);
    const received = (): Buffer => Buffer.concat(peer.frames.map(({ payload }) => payload.subarray(1)));
    await expect.poll(() => received().length).toBe(sent.length);
    expect(received().equals(sent)).toBe(true);
    expect(Math.max(...peer.frames.map(({ payload }) => payload.length))).toBeLessThanOrEqual((1 << 20) + 1);
    expect(peer.frames.every(({ payload }) => payload[0] === 0)).toBe(true);
  });

  test("stops reading when its reader does", async () => {
    const { api, stream, peer } = await start(V5);
    await using _ = api;
    const block = Buffer.alloc(32 << 10, "x");
    let sent = 0;
    // Fills what the system and the stream hold, until the server has to wait.
    while (sent < 256 << 20 && peer.socket.write(serverFrame(2, Buffer.concat([Buffer.from([1]), block]))))
      sent += block.length;
    await expect.poll(() => stream.readableLength).toBeGreaterThan(0);
    expect(sent).toBeLessThan(256 << 20);
    expect(stream.readableLength).toBeLessThan(1 << 20);
    peer.exit(0);
    expect((await readAll(stream)).length).toBeGreaterThanOrEqual(sent);
    expect(await stream.exitCode).toBe(0);
  });

  test("answers pings, and joins the fragments of a message around them", async () => {
    const { api, stream, peer } = await start(V5);
    await using _ = api;
    peer.socket.write(serverFrame(2, Buffer.from("\x01one "), false));
    peer.socket.write(serverFrame(9, Buffer.from("ping")));
    peer.socket.write(serverFrame(0, Buffer.from("message")));
    peer.exit(0);
    expect(await readAll(stream)).toBe("one message");
    expect(peer.frames.find(({ opcode }) => opcode === 10)?.payload.toString()).toBe("ping");
  });

  test.each<[string, Buffer]>([
    ["a text message", serverFrame(1, Buffer.from("\x01x"))],
    ["a masked frame", Buffer.from([0x82, 0x81, 1, 2, 3, 4, 5])],
    ["an unknown channel", serverFrame(2, Buffer.from("\x09x"))],
    ["a message without its start", serverFrame(0, Buffer.from("x"))],
    ["a control frame in pieces", serverFrame(9, Buffer.from("x"), false)],
    ["a length that no server sends", Buffer.from([0x82, 127, 0, 0, 0, 0, 0x7f, 0, 0, 0])],
    ["an extension", Buffer.from([0xc2, 0])],
  ])("does not take %s", async (_, bytes) => {
    const { api, stream, peer } = await start(V5);
    await using __ = api;
    stream.resume();
    stream.on("error", () => undefined);
    peer.socket.write(bytes);
    await expectRefused(stream.exitCode, "tampered");
  });

  test("that is refused is one request, with the cluster's reason", async () => {
    const api = await startScriptedApi(() => undefined);
    await using _ = api;
    api.onUpgrade = (_request, socket) => {
      const body = JSON.stringify({
        kind: "Status",
        code: 403,
        reason: "Forbidden",
        message: 'User "jane" cannot create resource "pods/exec" in API group ""',
      });
      socket.end(`HTTP/1.1 403 Forbidden\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    };
    await expectRefused(execInPod(api.client(), command), "permission_denied", "pods/exec");
    expect(api.seen.length).toBe(1);
  });

  test("whose answer is lost is never made twice", async () => {
    const api = await startScriptedApi((_request, response) => response.end("{}"));
    await using _ = api;
    const client = api.client();
    await client.call({ method: "GET", path: "/version" });
    api.onUpgrade = (_request, socket) => socket.destroy();
    await expectRefused(execInPod(client, command), "unavailable");
    expect(api.seen.filter(({ method }) => method === "UPGRADE").length).toBe(1);
  });

  test("does not believe an answer that is not to its own question", async () => {
    const api = await startScriptedApi(() => undefined);
    await using _ = api;
    api.onUpgrade = (request, socket) => {
      request.headers["sec-websocket-key"] = "another";
      acceptExec(request, socket, V5);
    };
    await expectRefused(execInPod(api.client(), command), "unavailable", "not a WebSocket we asked for");
  });
});

describe("frames", () => {
  test("of any length, at any address, are what they were", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 70_000 }), { maxLength: 3 }), (pieces) => {
        const frame = encodeClientFrame(2, ...pieces);
        expect(unmask(frame)).toEqual({ opcode: 2, payload: Buffer.concat(pieces), size: frame.length });
      }),
      { numRuns: 200 },
    );
  });

  test("may be cut anywhere", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 8 }), fc.nat(40), (payloads, cut) => {
        const reader = new ServerFrameReader(1 << 20);
        const bytes = Buffer.concat(payloads.map((payload) => serverFrame(2, payload)));
        const found: Buffer[] = [];
        for (let at = 0; at < bytes.length; at += cut + 1) {
          for (const { payload } of reader.push(bytes.subarray(at, at + cut + 1))) found.push(Buffer.from(payload));
        }
        expect(found).toEqual(payloads.map((payload) => Buffer.from(payload)));
      }),
      { numRuns: 200 },
    );
  });
});
