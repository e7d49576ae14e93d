import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { Demultiplexer, readOutput } from "../../../../src/sandbox/backends/docker/engine/demultiplexer.js";
import { type EngineEndpoint, findEndpoint } from "../../../../src/sandbox/backends/docker/engine/endpoint.js";
import { Engine } from "../../../../src/sandbox/backends/docker/engine/engine.js";
import { readJsonLines, readProgress } from "../../../../src/sandbox/backends/docker/engine/progress.js";
import { createScratch } from "../../../support/scratch.js";

const scratch = createScratch();
afterAll(() => scratch.remove());

describe("where the engine is", () => {
  const config = join(scratch.path, "config");
  const env = { DOCKER_CONFIG: config };
  const folder = (kind: string, name: string): string => {
    const path = join(config, "contexts", kind, createHash("sha256").update(name).digest("hex"));
    mkdirSync(path, { recursive: true });
    return path;
  };
  const writeContext = (name: string, docker: unknown): void =>
    writeFileSync(join(folder("meta", name), "meta.json"), JSON.stringify({ Name: name, Endpoints: { docker } }));
  mkdirSync(config, { recursive: true });
  writeContext("far", { Host: "tcp://far.example:2376", SkipTLSVerify: false });
  writeContext("near", { Host: "unix:///run/near.sock" });
  mkdirSync(join(folder("tls", "far"), "docker"));
  for (const name of ["ca", "cert", "key"]) writeFileSync(join(folder("tls", "far"), "docker", `${name}.pem`), name);

  test.each<[Record<string, string>, Partial<EngineEndpoint>]>([
    [{ DOCKER_HOST: "unix:///run/own.sock" }, { socketPath: "/run/own.sock" }],
    [{ DOCKER_HOST: "tcp://10.0.0.1:99" }, { host: "10.0.0.1", port: 99 }],
    [{ DOCKER_HOST: "tcp://engine.example" }, { host: "engine.example", port: 2375 }],
    [{ DOCKER_HOST: "tcp://[::1]:5" }, { host: "::1", port: 5 }],
    [{ DOCKER_HOST: "https://engine.example" }, { host: "engine.example", port: 2376, tls: { verify: true } }],
    [{ DOCKER_HOST: "unix:///run/own.sock", DOCKER_CONTEXT: "far" }, { socketPath: "/run/own.sock" }],
    [{ DOCKER_CONTEXT: "near" }, { socketPath: "/run/near.sock" }],
    [{ DOCKER_CONTEXT: "default" }, { name: "unix:///var/run/docker.sock" }],
  ])("%o", (given, wanted) => {
    expect(findEndpoint({}, { ...env, ...given })).toMatchObject(wanted);
  });

  test("TLS is spoken with what DOCKER_CERT_PATH holds", () => {
    const path = join(folder("tls", "far"), "docker");
    const { tls } = findEndpoint(
      {},
      { ...env, DOCKER_HOST: "tcp://e", DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: path },
    );
    expect(tls).toEqual({ verify: true, ca: Buffer.from("ca"), cert: Buffer.from("cert"), key: Buffer.from("key") });
  });

  test("the current context counts unless the environment names one, and brings its certificates", () => {
    writeFileSync(join(config, "config.json"), JSON.stringify({ currentContext: "far" }));
    expect(findEndpoint({}, env)).toMatchObject({ host: "far.example", port: 2376, tls: { verify: true } });
    expect(findEndpoint({}, { ...env, DOCKER_CONTEXT: "near" }).socketPath).toBe("/run/near.sock");
    expect(findEndpoint({ context: "near" }, env).socketPath).toBe("/run/near.sock");
    expect(findEndpoint({ host: "unix:///x" }, env).socketPath).toBe("/x");
  });

  test.each([
    ["ssh://root@far", "unsupported"],
    ["far:2375", "invalid_argument"],
    ["tcp://far:99999", "invalid_argument"],
    ["unix://relative", "invalid_argument"],
  ])("%s is refused", (host, code) => {
    expect(() => findEndpoint({}, { ...env, DOCKER_HOST: host })).toThrowError(expect.objectContaining({ code }));
  });

  test("a context that is not there is named", () => {
    expect(() => findEndpoint({ context: "gone" }, env)).toThrowError(/"gone"/);
  });
});

describe("an engine that is not running", () => {
  test.each([`unix://${join(scratch.path, "no.sock")}`, "tcp://127.0.0.1:1"])("%s", async (host) => {
    const engine = new Engine(findEndpoint({ host }));
    const calls = [
      engine.call("GET", "/_ping"),
      engine.stream("GET", "/events"),
      engine.hijack("/containers/x/attach"),
    ];
    for (const call of await Promise.allSettled(calls)) {
      expect(call).toMatchObject({
        status: "rejected",
        reason: { code: "unavailable", retryable: true, message: expect.stringContaining(host) },
      });
      expect((call as PromiseRejectedResult).reason.hint).toMatch(/systemctl start docker|start the engine/);
    }
  });
});

function frame(kind: number, text: string): Buffer {
  const bytes = Buffer.from(text);
  const header = Buffer.alloc(8);
  header[0] = kind;
  header.writeUInt32BE(bytes.length, 4);
  return Buffer.concat([header, bytes]);
}

describe("output", () => {
  test("is taken apart the same, wherever it is cut", () => {
    const part = fc.tuple(fc.constantFrom(1, 2), fc.string({ minLength: 1, maxLength: 40, unit: "binary" }));
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), fc.array(fc.nat(60), { maxLength: 20 }), (parts, cuts) => {
        const whole = Buffer.concat(parts.map(([kind, text]) => frame(kind, text)));
        const demultiplexer = new Demultiplexer();
        const got: Record<string, Buffer[]> = { stdout: [], stderr: [] };
        let at = 0;
        for (const length of [...cuts, whole.length]) {
          for (const { stream, bytes } of demultiplexer.push(whole.subarray(at, at + length))) got[stream]?.push(bytes);
          at += length;
        }
        for (const [kind, stream] of [
          [1, "stdout"],
          [2, "stderr"],
        ] as const) {
          const wanted = parts.filter(([one]) => one === kind).map(([, text]) => Buffer.from(text));
          expect(Buffer.concat(got[stream] ?? [])).toEqual(Buffer.concat(wanted));
        }
        expect(demultiplexer.isWhole).toBe(true);
      }),
    );
  });

  test("that breaks off in the middle is not taken for all of it", async () => {
    const read = async (): Promise<void> => {
      for await (const _ of readOutput(Readable.from([frame(1, "hello").subarray(0, 10)])));
    };
    await expect(read()).rejects.toMatchObject({ code: "backend_lost" });
  });

  test("that no engine sends is refused", () => {
    expect(() => new Demultiplexer().push(frame(7, "x"))).toThrowError(expect.objectContaining({ code: "tampered" }));
  });
});

describe("progress", () => {
  const progress = async (...chunks: string[]): Promise<unknown[]> => {
    const lines: unknown[] = [];
    for await (const line of readProgress(Readable.from(chunks.map((text) => Buffer.from(text))), "the build"))
      lines.push(line);
    return lines;
  };

  test("is read line by line, wherever it is cut", async () => {
    expect(await progress('{"status":"Pul', 'ling"}\r\n{"stream":"€', '"}\n{"aux":{"ID":"x"}}')).toEqual([
      { status: "Pulling" },
      { stream: "€" },
      { aux: { ID: "x" } },
    ]);
  });

  test("an error in it is an error, with what was said before", async () => {
    const lines = progress(
      '{"stream":"Step 1"}\n{"stream":"cc: bad\\n"}\n{"errorDetail":{"message":"code 1"},"error":"code 1"}\n',
    );
    await expect(lines).rejects.toMatchObject({ message: "the build failed: code 1\nStep 1\ncc: bad" });
    await expect(progress('{"error":"no space left on device"}')).rejects.toMatchObject({ code: "no_space" });
    await expect(progress('{"error":"manifest unknown"}')).rejects.toMatchObject({ code: "not_found" });
  });

  test("that is none is not swallowed", async () => {
    await expect(progress("<html>")).rejects.toMatchObject({ code: "backend_lost" });
    const endless = readJsonLines(Readable.from(Array(3).fill(Buffer.alloc(1 << 20, "x"))));
    await expect(endless.next()).rejects.toMatchObject({ code: "limit_exceeded" });
  });
});
