// own process: lowers the limit on the size of files for a moment
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NetworkEvent, SandboxEvent } from "../../../contracts/types.js";
import { runtimeDir } from "../../../src/machine/home.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { egressInternals } from "../../../src/sandbox/egress/open-egress.js";
import { createJournal, JournalReader } from "../../../src/sandbox/egress/traffic/journal.js";
import { NETWORK_EVENT_SCHEMA } from "../../../src/sandbox/egress/traffic/network-event.js";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { openSandbox } from "../../../src/sandbox.js";
import { check } from "../../../src/util/schema.js";
import { type Origin, startOrigin } from "../../support/egress/origin.js";
import { createScratch, type Scratch } from "../../support/scratch.js";

const NAME = "audited.test";
let scratch: Scratch;
let origin: Origin;
let count = 0;

beforeAll(async () => {
  scratch = createScratch();
  origin = await startOrigin();
  egressInternals.route = {
    lookup: async (host) => [host === "private.test" ? "10.0.0.1" : "127.0.0.1"],
    isReachable: (address) => address === "127.0.0.1",
  };
});

afterAll(() => {
  delete egressInternals.route;
  origin.close();
  scratch.remove();
});

const newPath = (): string => join(scratch.path, `audit-${++count}.jsonl`);
const readEvents = (path: string): NetworkEvent[] =>
  readFileSync(path, "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line.replace(/^\0+/, "")) as NetworkEvent);
const entry = (): string => `plain://${NAME}:${origin.port}`;
const open = (audit: string, more: SandboxOptions = {}): Promise<Sandbox> =>
  createLocalSandbox({ network: { allow: [entry(), "private.test"] }, audit, ...more });
const curl = async (sandbox: Sandbox, ...args: string[]): Promise<string> =>
  (await sandbox.exec({ argv: ["curl", "-s", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}", ...args] })).stdout;
const url = (path = "/"): string => `http://${NAME}:${origin.port}${path}`;
const shortOf = ({ event, decision, rule, host, port, method }: NetworkEvent): unknown[] => [
  ...[event, decision, rule, `${host}:${port}`],
  ...(method === undefined ? [] : [method]),
];

describe("an audit log", () => {
  test("has a line for what passes, for its end and for what does not, and no contents", async () => {
    const path = newPath();
    await using sandbox = await open(path);
    const written = async (lines: number): Promise<void> =>
      await expect.poll(() => readEvents(path).length).toBe(lines);
    expect(await curl(sandbox, "-d", "the-body", url("/a-path?a-query=1"))).toBe("200");
    await written(2);
    expect(await curl(sandbox, "-p", url())).toBe("200");
    await written(4);
    expect(await curl(sandbox, "http://other.test/a-path")).toBe("403");
    expect(await curl(sandbox, "http://private.test/")).toBe("403");
    const where = `${NAME}:${origin.port}`;
    await expect
      .poll(() => readEvents(path).map(shortOf))
      .toEqual([
        ["open", "allowed", entry(), where, "POST"],
        ["close", "allowed", entry(), where, "POST"],
        ["open", "allowed", entry(), where],
        ["close", "allowed", entry(), where],
        ["blocked", "denied", "not_allowed", "other.test:80", "GET"],
        ["open", "allowed", "private.test", "private.test:80", "GET"],
        ["blocked", "denied", "not_public", "private.test:80", "GET"],
        ["close", "allowed", "private.test", "private.test:80", "GET"],
      ]);
    const events = readEvents(path);
    for (const event of events) {
      expect(() => check(event, NETWORK_EVENT_SCHEMA, "event")).not.toThrow();
      expect(event).toMatchObject({ version: 1, sandbox: sandbox.id });
    }
    expect(events.map(({ connection }) => connection)).toEqual([1, 1, 2, 2, 3, 4, 5, 4]);
    expect(events[1]?.sent).toBeGreaterThan("the-body".length);
    expect(events[1]?.received).toBeGreaterThan("hello POST   ".length);
    expect(events[1]?.durationMs).toBeGreaterThanOrEqual(0);
    const text = readFileSync(path, "utf8");
    for (const secret of ["the-body", "a-query", "a-path", "hello"]) expect(text).not.toContain(secret);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test("has no password of an address that a program asked for, and neither have warnings", async () => {
    const [path, events] = [newPath(), [] as SandboxEvent[]];
    await using sandbox = await open(path, { onEvent: (event) => events.push(event) });
    const ask = async (request: string): Promise<void> => {
      const argv = ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/3128; cat >&3; cat <&3 >/dev/null"];
      await sandbox.exec({ argv, stdin: request });
    };
    await ask(`GET http://me:hunter2@${NAME}/ HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`);
    await ask(`CONNECT me:hunter2@${NAME}:443 HTTP/1.1\r\n\r\n`);
    await ask(`GET http://${NAME}:${origin.port}/ HTTP/1.1\r\nHost: me:p@hunter2@${NAME}\r\n\r\n`);
    await expect
      .poll(() => readEvents(path).map(shortOf))
      .toEqual([
        ["blocked", "denied", "malformed_host", `***@${NAME}:undefined`],
        ["blocked", "denied", "malformed_host", `***@${NAME}:443:undefined`],
        ["blocked", "denied", "host_mismatch", `***@${NAME}:${origin.port}`],
      ]);
    expect(events.filter(({ type }) => type === "warning")).toHaveLength(3);
    expect(JSON.stringify(events) + readFileSync(path, "utf8")).not.toContain("hunter2");
  });

  test("is added to, by a sandbox that is reopened, too, and by its forks", async () => {
    const path = newPath();
    writeFileSync(path, `{"before":true}\n`);
    const kept = await open(path, { keep: true });
    await curl(kept, url());
    await using fork = await kept.fork();
    await curl(fork, url());
    await kept.teardown();
    await using again = await openSandbox({ id: kept.id, keep: false });
    await curl(again, url());
    await expect
      .poll(() => readEvents(path).map(({ sandbox }) => sandbox))
      .toEqual([undefined, ...[kept.id, kept.id, fork.id, fork.id, kept.id, kept.id]]);
    await fork.teardown();
  });

  test("that can't be written lets nothing pass, and says so; later it goes on", async () => {
    const path = newPath();
    const size = 64 << 20;
    writeFileSync(path, "");
    truncateSync(path, size);
    const events: SandboxEvent[] = [];
    await using sandbox = await open(path, { onEvent: (event) => events.push(event) });
    const child = await sandbox.spawn({
      argv: [
        "bash",
        "-c",
        `exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT ${NAME}:${origin.port} HTTP/1.1\\r\\n\\r\\n' >&3; head -n 1 <&3; read -r _`,
      ],
    });
    for await (const chunk of child.stdout) if (Buffer.from(chunk).includes("200")) break;
    const before = origin.requests.length;
    const limit = (soft: string): void => {
      execFileSync("prlimit", ["--pid", `${process.pid}`, `--fsize=${soft}:`]);
    };
    const full = statSync(path).size;
    limit(`${full}`);
    try {
      expect(await curl(sandbox, url())).toBe("503");
      await child.kill("SIGKILL");
      await child.wait();
      expect(await curl(sandbox, url())).toBe("503");
      expect(origin.requests.length).toBe(before);
      expect(statSync(path).size).toBe(full);
    } finally {
      limit("unlimited");
    }
    const warnings = events.filter(({ type }) => type === "warning").map(({ message }) => message);
    expect(warnings).toEqual([`the audit log ${path} can't be written (EFBIG): nothing passes until it can`]);
    expect(await curl(sandbox, url())).toBe("200");
    // What was over meanwhile is there as well; what was refused is not.
    await expect
      .poll(() => readEvents(path).map(({ event, connection }) => `${event} ${connection}`))
      .toEqual([...["open 1", "close 1", "open 4", "close 4"]]);
  });

  test.each<[string, (path: string) => unknown, string]>([
    ["a link", (path) => void symlinkSync(join(scratch.path, "target"), path), "invalid_argument"],
    ["a FIFO", (path) => void execFileSync("mkfifo", [path]), "invalid_argument"],
    ["a directory", (path) => void mkdirSync(path), "invalid_argument"],
    ["a place that commands can write to", () => ({ baseDir: scratch.path }), "invalid_argument"],
    [
      "a writable mount",
      () => ({ mounts: [{ source: scratch.path, target: "/mounted", writable: true }] }),
      "invalid_argument",
    ],
    ["an unrestricted network", () => ({ network: "full" }), "unsupported"],
    ["a sandbox without isolation", () => ({ isolation: "none", network: "full" }), "unsupported"],
  ])("is refused for %s, before anything is made", async (_, prepare, code) => {
    const path = newPath();
    const more = prepare(path) ?? {};
    await expect(open(path, more)).rejects.toMatchObject({ code, message: expect.stringContaining("audit") });
    expect(existsSync(join(scratch.path, "target"))).toBe(false);
  });

  test("is refused in a directory that is not there", async () => {
    await expect(open(join(scratch.path, "nowhere", "file"))).rejects.toMatchObject({ code: "invalid_argument" });
  });
});

describe("the journal of a sandbox", () => {
  test("is next to its record, for its owner alone, once there is something to write", async () => {
    await using sandbox = await createLocalSandbox({ network: { allow: [entry()] } });
    const path = join(runtimeDir(sandbox.id), "network.jsonl");
    await sandbox.exec({ argv: ["true"] });
    expect(existsSync(path)).toBe(false);
    expect(await curl(sandbox, url())).toBe("200");
    await expect.poll(() => readEvents(path).map(({ event }) => event)).toEqual(["open", "close"]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await sandbox.teardown();
    expect(existsSync(path)).toBe(false);
  });

  test("is bounded, keeps the newest, and a reader misses nothing while it turns over", () => {
    const directory = join(scratch.path, "journal");
    mkdirSync(directory);
    const journal = createJournal(directory);
    const reader = new JournalReader(directory);
    const seen: number[] = [];
    const total = 20_000;
    for (let connection = 1; connection <= total; connection++) {
      const about = { decision: "denied", rule: "not_allowed", host: `${"x".repeat(60)}.test`, port: 443 } as const;
      journal.write({ version: 1, time: "", sandbox: "", connection, event: "blocked", ...about });
      if (connection % 1000 === 0) seen.push(...reader.read().map((event) => event.connection));
    }
    reader.close();
    expect(seen).toEqual(Array.from({ length: total }, (_, index) => index + 1));
    const files = ["network.jsonl", "network-older.jsonl"].map((name) => statSync(join(directory, name)).size);
    for (const size of files) expect(size).toBeLessThanOrEqual(1 << 20);
    const late = new JournalReader(directory).read().map(({ connection }) => connection);
    expect(late.at(-1)).toBe(total);
    expect(late.length).toBeGreaterThan(5000);
    journal.close();
  });

  test("that can't be written disturbs nothing", async () => {
    await using sandbox = await createLocalSandbox({ network: { allow: [entry()] } });
    mkdirSync(join(runtimeDir(sandbox.id), "network.jsonl"));
    expect(await curl(sandbox, url())).toBe("200");
  });
});
