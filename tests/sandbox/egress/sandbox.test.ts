import { createHash, randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { createServer as createTlsServer } from "node:https";
import { createServer as createTcpServer, type Socket } from "node:net";
import { join } from "node:path";
import { text as streamText } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SandboxEvent, SandboxProcess } from "../../../contracts/types.js";
import { buildJail } from "../../../src/sandbox/backends/local/local-jail.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { egressInternals, openEgress } from "../../../src/sandbox/egress/open-egress.js";
import { startCommand } from "../../../src/sandbox/guest/guest-process.js";
import { startJailedGuest } from "../../../src/sandbox/jail/start-guest.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { type Certificate, createCertificate } from "../../support/egress/certificate.js";
import { type Origin, startOrigin } from "../../support/egress/origin.js";
import { listen } from "../../support/egress/running-proxy.js";
import { withoutSecrets } from "../../support/egress/without-secrets.js";
import { processesWith } from "../../support/processes/host-processes.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

const NAME = "allowed.test";
const BLOB = randomBytes(20 << 20);

let scratch: Scratch;
let certificate: Certificate;
let origin: Origin;
let secure: { port: number; close(): void };
let raw: { port: number; sockets: Socket[]; close(): void };
let events: SandboxEvent[];
let sandbox: Sandbox;
const lookups: string[] = [];

beforeAll(async () => {
  scratch = createScratch();
  certificate = createCertificate(scratch.path, [NAME]);
  origin = await startOrigin();
  const tlsServer = createTlsServer(certificate, (_incoming, response) => response.end(BLOB));
  secure = { port: await listen(tlsServer), close: () => tlsServer.close() };
  const sockets: Socket[] = [];
  const tcpServer = createTcpServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket.on("error", () => undefined));
    let size = "";
    socket.on("data", (chunk) => {
      size += chunk;
    });
    socket.on("end", () => socket.end(Buffer.alloc(Number(size))));
  });
  raw = { port: await listen(tcpServer), sockets, close: () => tcpServer.close() };
  egressInternals.route = {
    lookup: async (host) => {
      lookups.push(host);
      return [host === NAME ? "127.0.0.1" : "10.0.0.1"];
    },
    isReachable: (address) => address === "127.0.0.1",
  };
  events = [];
  sandbox = await createLocalSandbox({
    network: {
      allow: [
        `plain://${NAME}:${origin.port}`,
        `${NAME}:${secure.port}`,
        `plain://${NAME}:${raw.port}`,
        "private.test",
      ],
    },
    onEvent: (event) => events.push(event),
  });
});

afterAll(async () => {
  await sandbox.teardown();
  delete egressInternals.route;
  for (const server of [origin, secure, raw]) server.close();
  scratch.remove();
});

const curl = (...args: string[]): ReturnType<Sandbox["exec"]> =>
  sandbox.exec({ argv: ["curl", "-sS", "-m", "20", ...args] });
const warnings = (): string[] => events.filter(({ type }) => type === "warning").map(({ message }) => message);

describe("a program inside", () => {
  test("says that it may", () => {
    expect(sandbox.capabilities.network).toEqual(["none", "full", "allow"]);
  });

  test("reaches an allowed name by curl", async () => {
    expect(await curl(`http://${NAME}:${origin.port}/`)).toMatchObject({ exitCode: 0, stdout: "hello GET    " });
    expect(await curl("-d", "data", `http://${NAME}:${origin.port}/`)).toMatchObject({ stdout: "hello POST   " });
    expect(origin.bodies.at(-1)).toBe("data");
  });

  test("reaches it by Python", async () => {
    const script = `import urllib.request as u; print(u.urlopen("http://${NAME}:${origin.port}/").read().decode())`;
    expect(await sandbox.exec({ argv: ["python3", "-c", script] })).toMatchObject({
      exitCode: 0,
      stdout: "hello GET    \n",
    });
  });

  test("reaches it by Node, with an agent for tunnels", async () => {
    const script = `
      const http = require("http"), { hostname, port } = new URL(process.env.HTTPS_PROXY);
      http.request({ host: hostname, port, method: "CONNECT", path: "${NAME}:${origin.port}" })
        .on("connect", (_, socket) => http.get({ createConnection: () => socket, host: "${NAME}", path: "/" }, (r) => r.pipe(process.stdout)))
        .end();`;
    expect(await sandbox.exec({ argv: ["node", "-e", script] })).toMatchObject({
      exitCode: 0,
      stdout: "hello GET    ",
    });
  });

  test("gets a large answer whole, through TLS", async () => {
    await sandbox.writeFile("ca.pem", certificate.cert);
    const script = `curl -sS --cacert ca.pem https://${NAME}:${secure.port}/ | sha256sum`;
    const { stdout, stderr } = await sandbox.shell(script);
    expect({ stdout, stderr }).toEqual({
      stdout: `${createHash("sha256").update(BLOB).digest("hex")}  -\n`,
      stderr: "",
    });
  });

  test("gets no plain request through a tunnel to an entry that does not say plain", async () => {
    await using strict = await createLocalSandbox({
      network: { allow: [`${NAME}:${origin.port}`] },
      onEvent: (event) => events.push(event),
    });
    const before = origin.requests.length;
    const argv = ["curl", "-sS", "-m", "20", "-p", "-H", "Host: evil.test", `http://${NAME}:${origin.port}/`];
    expect(await strict.exec({ argv })).toMatchObject({
      exitCode: expect.toSatisfy((code) => [52, 56].includes(code)),
    });
    expect(origin.requests.length).toBe(before);
    const where = `${NAME}:${origin.port}`;
    expect(warnings()).toContain(
      `blocked ${where}: its tunnel did not open with a TLS hello that names it; to allow that: "plain://${where}"`,
    );
    events.length = 0;
  });

  test("gets all of an answer although it has closed its half and reads late", async () => {
    // The system takes some MB on the way; with one of these sizes the rest is with the guest when the origin has ended.
    const script = `
import hashlib, os, socket, time
host, port = os.environ["https_proxy"][7:].split(":")
def ask(size):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    s.connect((host, int(port)))
    s.sendall(b"CONNECT ${NAME}:${raw.port} HTTP/1.1\\r\\n\\r\\n")
    head = b""
    while not head.endswith(b"\\r\\n\\r\\n"): head += s.recv(1)
    s.sendall(str(size).encode())
    s.shutdown(socket.SHUT_WR)
    return s
def read(s):
    n = 0
    while True:
        b = s.recv(1000000)
        if not b: return n
        n += len(b)
sizes = [4000000 + 200000 * i for i in range(12)]
sockets = [ask(size) for size in sizes]
time.sleep(1)
print([read(s) for s in sockets] == sizes)`;
    const { stdout, stderr } = await sandbox.exec({ argv: ["python3", "-c", script] });
    expect({ stdout, stderr }).toEqual({ stdout: "True\n", stderr: "" });
  });

  test("gets the answer although it says all it has to say before it reads", async () => {
    const script = `
import os, socket
host, port = os.environ["http_proxy"][7:].split(":")
s = socket.create_connection((host, int(port)))
s.sendall(b"POST http://127.0.0.1/ HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nContent-Length: 10000000\\r\\n\\r\\n")
for _ in range(10): s.sendall(bytes(1000000))
print(s.recv(12).decode())`;
    const { stdout, stderr } = await sandbox.exec({ argv: ["python3", "-c", script] });
    expect({ stdout, stderr }).toEqual({ stdout: "HTTP/1.1 403\n", stderr: "" });
  });

  test("is told why a host is not reached, and so is whoever listens", async () => {
    const { stdout } = await curl("-w", "%{http_code}", "http://evil.test/");
    expect(stdout).toMatch(/does not allow evil\.test:80\nto allow it: .*\n403$/);
    expect((await curl("https://evil.test/")).stderr).toMatch(/403/);
    expect(await curl("-w", "%{http_code}", "http://private.test/")).toMatchObject({
      stdout: expect.stringMatching(/403$/),
    });
    expect(warnings()).toEqual([
      "blocked 127.0.0.1:80: network.allow does not have it",
      "blocked evil.test:80: network.allow does not have it",
      "blocked evil.test:443: network.allow does not have it",
      "blocked private.test:80: its address is not public",
    ]);
    expect(lookups).not.toContain("evil.test");
  });
});

describe("[N-NET-06] a program that does not use the proxy", () => {
  test("gets nowhere else, whatever it does with the variables", async () => {
    const before = [origin.requests.length, raw.sockets.length];
    const direct = await sandbox.exec({
      argv: [
        "sh",
        "-c",
        `unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY; curl -sS -m 20 http://evil.test:${origin.port}/`,
      ],
    });
    expect(direct.stderr).toMatch(/resolve host/);
    for (const address of ["127.0.0.1", "10.0.0.1", "1.1.1.1", "169.254.169.254"]) {
      const result = await curl("--noproxy", "*", `http://${address}:${origin.port}/`);
      expect([address, result.exitCode]).toEqual([address, 7]);
    }
    expect([origin.requests.length, raw.sockets.length]).toEqual(before);
  });

  test("has no interface but loopback, and a resolver that asks no other", async () => {
    const { stdout } = await sandbox.shell(
      "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; getent hosts secret.evil.test; cat /etc/resolv.conf",
    );
    expect(stdout).toBe("lo\nnameserver 127.77.0.1\n");
    expect(lookups).not.toContain("secret.evil.test");
  });

  test("may use the loopback of the sandbox, past the proxy", async () => {
    await using server = await sandbox.spawn({ argv: ["python3", "-m", "http.server", "8099", "--bind", "127.0.0.1"] });
    const script =
      "for i in $(seq 200); do curl -sS -o /dev/null -w '%{http_code}' http://127.0.0.1:8099/ 2>/dev/null && exit; sleep 0.05; done";
    expect((await sandbox.shell(script)).stdout).toMatch(/200$/);
    expect(server.id).toBeTruthy();
  });
});

test("connections that a killed command had are over, and the next command has its own", async () => {
  const before = raw.sockets.length;
  const held = `exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT ${NAME}:${raw.port} HTTP/1.1\\r\\n\\r\\n' >&3; head -n 1 <&3; sleep 600`;
  const process = await sandbox.spawn({ argv: ["bash", "-c", held] });
  for await (const chunk of process.stdout) if (Buffer.from(chunk).includes("200")) break;
  await process.kill("SIGKILL");
  const [socket] = raw.sockets.slice(before);
  expect(socket).toBeDefined();
  await new Promise<void>((resolve) => {
    if (socket?.readableEnded) resolve();
    else socket?.once("end", resolve).once("close", resolve);
  });
  expect((await curl(`http://${NAME}:${origin.port}/`)).stdout).toBe("hello GET    ");
});

function killGuest(workDir: string): void {
  const guest = processesWith(workDir).find(({ argv }) => argv[1] === "serve");
  if (guest === undefined) throw new Error(`no guest serves ${workDir}`);
  process.kill(guest.pid, "SIGKILL");
}

describe("what waits at an origin ends", () => {
  const chunk = Buffer.alloc(64 << 10);
  const go = (socket: Socket): void => {
    while (!socket.destroyed && socket.write(chunk));
  };
  /** Never closes by itself. It sends without an end, or closes when nobody is there any more to be answered. */
  const startStubborn = async (sends: boolean): Promise<{ port: number; sockets: Socket[]; close(): void }> => {
    const sockets: Socket[] = [];
    const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
      sockets.push(socket.on("error", () => undefined));
      if (sends) go(socket.on("drain", () => go(socket)));
      else socket.resume().on("end", () => socket.destroy());
    });
    return { port: await listen(server), sockets, close: () => server.close() };
  };
  const closed = (socket: Socket | undefined): Promise<void> =>
    new Promise((resolve) => {
      if (socket === undefined || socket.closed) resolve();
      else socket.once("close", () => resolve());
    });
  const tunnelled = (port: number): string =>
    `printf 'CONNECT ${NAME}:${port} HTTP/1.1\\r\\n\\r\\n' >&3; head -c 5000000 <&3 >&2; echo go; cat <&3 >&2`;
  const plain = (port: number): string =>
    `printf 'GET http://${NAME}:${port}/ HTTP/1.0\\r\\n\\r\\n' >&3; echo go; cat <&3 >&2`;

  test.each([
    [
      "an endless answer",
      "its reader",
      tunnelled,
      async (_box: Sandbox, reader: SandboxProcess) => reader.kill("SIGKILL"),
    ],
    ["a request", "the sandbox", plain, async (box: Sandbox) => box.teardown()],
    ["a request", "the guest", plain, async ({ workDir }: Sandbox) => killGuest(workDir)],
  ])("%s, with %s", async (_what, _whose, script, end) => {
    const server = await startStubborn(script === tunnelled);
    const box = await createLocalSandbox({ network: { allow: [`plain://${NAME}:${server.port}`] } });
    const argv = ["bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/3128; ${script(server.port)}`];
    const reader = await box.spawn({ argv });
    const drained = reader.stderr.pipeTo(new WritableStream()).catch(() => undefined);
    for await (const chunk of reader.stdout) if (Buffer.from(chunk).includes("go")) break;
    while (server.sockets.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await end(box, reader);
    await closed(server.sockets[0]);
    await box.teardown();
    await drained;
    server.close();
  });
});

test("a proxy that is dead lets nothing out", async () => {
  const workDir = join(scratch.path, "dead");
  mkdirSync(workDir);
  const tree = { source: workDir, target: workDir, writable: true, owned: true };
  const walls = buildJail({
    workDir,
    trees: [tree],
    network: "none",
    cgroups: [],
  });
  const guest = await startJailedGuest(walls.spec);
  try {
    const egress = await openEgress(guest.channel, {
      rules: { allow: [`${NAME}:${origin.port}`] },
      onBlocked: () => undefined,
      ...withoutSecrets(),
    });
    const fetchOnce = async (): Promise<{ exitCode: number; text: string }> => {
      const argv = ["curl", "-sS", `http://${NAME}:${origin.port}/`];
      const env = { ...walls.baseEnv, ...egress.env };
      const process = await startCommand(guest.channel, { argv, cwd: workDir, env, stdin: "none" }, "");
      const text = await streamText(process.stdout);
      return { exitCode: (await process.wait()).exitCode, text };
    };
    expect(await fetchOnce()).toEqual({ exitCode: 0, text: "hello GET    " });
    await egress.close();
    const before = origin.requests.length;
    const { exitCode, text } = await fetchOnce();
    expect([52, 56]).toContain(exitCode); // nothing came back, or a reset
    expect(text).toBe("");
    expect(origin.requests.length).toBe(before);
  } finally {
    await guest.stop();
  }
});

test("an empty list lets nothing out", async () => {
  const seen: SandboxEvent[] = [];
  await using none = await createLocalSandbox({ network: { allow: [] }, onEvent: (event) => seen.push(event) });
  const before = origin.requests.length;
  const { stdout } = await none.exec({ argv: ["curl", "-sS", "-w", "%{http_code}", `http://${NAME}:${origin.port}/`] });
  expect(stdout).toMatch(/403$/);
  expect(origin.requests.length).toBe(before);
  expect(seen.map(({ message }) => message)).toContain(
    `blocked ${NAME}:${origin.port}: network.allow does not have it`,
  );
});

test("a kept sandbox has the same list when it is opened again", async () => {
  const first = await createLocalSandbox({ network: { allow: [`${NAME}:${origin.port}`] }, keep: true });
  await first.teardown();
  await using again = await createLocalSandbox({ id: first.id, keep: false });
  const { stdout } = await again.shell(
    `curl -sS http://${NAME}:${origin.port}/; curl -sS -w '%{http_code}' http://${NAME}:${raw.port}/`,
  );
  expect(stdout).toMatch(/^hello GET .*does not allow .*403$/s);
});

test("a fork has the same list, and a proxy of its own", async () => {
  const first = await createLocalSandbox({ network: { allow: [`${NAME}:${origin.port}`] } });
  await using fork = await first.fork();
  await first.teardown();
  const { stdout } = await fork.shell(
    `curl -sS http://${NAME}:${origin.port}/; curl -sS -w '%{http_code}' http://${NAME}:${raw.port}/`,
  );
  expect(stdout).toMatch(/^hello GET .*does not allow .*403$/s);
});

test("[N-NET-09] what cannot be kept is refused: an odd entry, and a list without isolation", async () => {
  await expect(createLocalSandbox({ network: { allow: ["*"] } })).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining("network.allow[0]"),
  });
  await expect(createLocalSandbox({ network: { allow: [NAME] }, isolation: "none" })).rejects.toMatchObject({
    code: "unsupported",
    message: expect.stringContaining("network"),
  });
});
