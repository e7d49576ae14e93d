import { once } from "node:events";
import { createSecureServer, type Http2SecureServer, type ServerHttp2Stream } from "node:http2";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLocalSandbox } from "../../src/sandbox/backends/local.js";
import { egressInternals } from "../../src/sandbox/egress/open-egress.js";
import type { Sandbox } from "../../src/sandbox/types.js";
import { createCertificate } from "../support/egress/certificate.js";
import { listen } from "../support/egress/running-proxy.js";
import { createScratch, type Scratch } from "../support/scratch.js";
import { hasCommand } from "../support/walks/fresh-debian.js";
import { PROGRAMS } from "./clients.js";

const API = "api.streams.test";
const VALUE = "kept-outside-0123456789";
/** That of Debian: its packages are not for others. */
const PYTHON = "/usr/bin/python3";

let scratch: Scratch;
let server: Http2SecureServer;
let port: number;
let sandbox: Sandbox;
/** Path and key of each request. */
const asked: string[] = [];

const url = (path: string): string => `https://${API}:${port}${path}`;

/** A message of gRPC, which is not compressed. */
function message(text: string): Buffer {
  const length = Buffer.alloc(5);
  length.writeUInt32BE(Buffer.byteLength(text), 1);
  return Buffer.concat([length, Buffer.from(text)]);
}

async function answer(stream: ServerHttp2Stream, headers: Readonly<Record<string, unknown>>): Promise<void> {
  const key = String(headers["x-api-key"]);
  asked.push(`${headers[":path"]} ${key}`);
  await once(stream.resume(), "end");
  if (headers["content-type"] !== "application/grpc") {
    stream.respond({ ":status": 200, "x-reflected": key });
    stream.end(`you sent ${key}`);
    return;
  }
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", "grpc-message": key }));
  for (const word of ["you", "sent", key]) stream.write(message(word));
  stream.end();
}

beforeAll(async () => {
  scratch = createScratch();
  const certificate = createCertificate(scratch.path, [API]);
  server = createSecureServer(certificate);
  server.on("stream", (stream, headers) => void answer(stream, headers).catch(() => stream.destroy()));
  server.on("sessionError", () => undefined).on("tlsClientError", () => undefined);
  port = await listen(server);
  egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: (address) => address === "127.0.0.1" };
  egressInternals.ca = [certificate.cert.toString()];
  process.env["TEST_KEY"] = VALUE;
  const hosts = [`${API}:${port}`];
  sandbox = await createLocalSandbox({
    network: { allow: [{ host: API, port, paths: ["/open/**"] }] },
    secrets: { TEST_KEY: { hosts, header: "x-api-key" } },
    mounts: [{ source: PROGRAMS }],
  });
});

afterAll(async () => {
  await sandbox.teardown();
  server.close();
  scratch.remove();
  delete egressInternals.route;
  delete egressInternals.ca;
  delete process.env["TEST_KEY"];
});

const grpc = (path: string): string[] => [PYTHON, join(PROGRAMS, "get-grpc.py"), url(path)];

/** Why there is no gRPC here; undefined where it is. */
async function whyNoGrpc(): Promise<string | undefined> {
  const { exitCode } = await sandbox.exec(PYTHON, ["-c", "import grpc"]);
  return exitCode === 0 ? undefined : "this machine has no gRPC for Python";
}

test("Node sends the value that it doesn't have, by nothing but HTTP/2", async () => {
  const { stdout, exitCode } = await sandbox.exec({ argv: ["node", join(PROGRAMS, "get-http2.mjs"), url("/open/a")] });
  expect({ stdout, exitCode }).toEqual({ stdout: expect.stringMatching(/^you sent glovebox\w{32}$/), exitCode: 0 });
  expect(asked).toEqual([`/open/a ${VALUE}`]);
});

test("curl, which agrees on HTTP/1.1 here, is told that the host speaks none", async ({ skip }) => {
  if (!hasCommand("curl")) skip("this machine has no curl");
  const { stdout } = await sandbox.exec("curl", ["-sS", "--http2", url("/open/a")]);
  expect(stdout).toContain("speaks no HTTP/1.1");
});

test("gRPC calls a method with the value, and gets the messages and the status", async ({ skip }) => {
  const why = await whyNoGrpc();
  if (why !== undefined) skip(why);
  asked.length = 0;
  const { stdout, stderr } = await sandbox.exec({ argv: grpc("/open/Ask") });
  // As long as the value was: the messages have their lengths before them.
  expect(stdout, stderr).toMatch(new RegExp(`^you sent glovebox\\w{${VALUE.length - "glovebox".length}}\n$`));
  expect(asked).toEqual([`/open/Ask ${VALUE}`]);
});

test("gRPC is told by a status what the rules do not allow", async ({ skip }) => {
  const why = await whyNoGrpc();
  if (why !== undefined) skip(why);
  asked.length = 0;
  const { stdout, exitCode } = await sandbox.exec({ argv: grpc("/private/Ask") });
  expect({ stdout, exitCode }).toEqual({
    stdout: expect.stringMatching(/^PERMISSION_DENIED glovebox: the rules for api\.streams\.test do not allow POST/),
    exitCode: 1,
  });
  expect(asked).toEqual([]);
});
