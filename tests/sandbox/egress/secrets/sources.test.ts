import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { SecretRule } from "../../../../contracts/types.js";
import { type OpenSecrets, openSecrets } from "../../../../src/sandbox/egress/secrets/open-secrets.js";
import { redact } from "../../../../src/util/sanitize.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const VALUE = "value-0123456789";
let scratch: Scratch;
const opened: OpenSecrets[] = [];

beforeAll(() => {
  scratch = createScratch();
});
afterAll(() => scratch.remove());
afterEach(() => {
  for (const secrets of opened.splice(0)) secrets.close();
  vi.useRealTimers();
});

async function open(from: SecretRule["from"], opts: { visible?: string[]; signal?: AbortSignal } = {}) {
  const rule = { hosts: ["a.test"], ...(from && { from }) };
  const secrets = await openSecrets(
    { KEY: rule },
    {
      visible: opts.visible ?? [],
      network: () => "none",
      signal: opts.signal,
    },
  );
  opened.push(secrets);
  return secrets;
}

/** The value that goes into a request now. */
async function valueNow({ broker, env }: OpenSecrets): Promise<string | undefined> {
  const headers: [string, string][] = [["x-key", env["KEY"] ?? ""]];
  return (await broker.changesOf("a.test", 443, "GET")?.ofRequest({ path: "/", headers }))?.headers[0]?.[1];
}

function place(name: string, content: string, mode = 0o600): string {
  const path = join(scratch.path, name);
  writeFileSync(path, content, { mode });
  chmodSync(path, mode);
  return path;
}

function program(name: string, script: string): string {
  return place(name, `#!/bin/sh\n${script}\n`, 0o700);
}

test("a value is redacted in texts while the sandbox is open", async () => {
  const secrets = await open({ file: place("redacted", "redacted-0123456789") });
  expect(redact("a redacted-0123456789 b")).toBe("a [REDACTED:KEY] b");
  secrets.close();
  expect(redact("a redacted-0123456789 b")).toBe("a redacted-0123456789 b");
});

describe("a variable", () => {
  test("that is not set, or empty, is no value", async () => {
    const missing = { code: "unauthenticated", message: "Secret KEY has no value: the variable NOT_SET is not set" };
    await expect(open({ env: "NOT_SET" })).rejects.toMatchObject(missing);
    process.env["NOT_SET"] = "";
    await expect(open({ env: "NOT_SET" })).rejects.toMatchObject(missing);
    delete process.env["NOT_SET"];
    await expect(open(undefined)).rejects.toMatchObject({
      message: expect.stringContaining("its variable is not set"),
    });
  });

  test.each([
    ["is too short", "sh0rt"],
    ["has a line end", "first-line\nsecond-line"],
    ["has a space at its end", "some-value-0123 "],
    ["is no ASCII", "välue-0123456789"],
  ])("whose value %s is refused, without showing it", async (_, value) => {
    process.env["TEST_ODD"] = value;
    const failure = await open({ env: "TEST_ODD" }).catch((error: Error) => error);
    delete process.env["TEST_ODD"];
    expect(failure).toMatchObject({ code: "unauthenticated" });
    expect(JSON.stringify(failure) + (failure as Error).message).not.toContain(value);
  });
});

describe("a file", () => {
  test("gives its text without the line end", async () => {
    expect(await valueNow(await open({ file: place("value", `${VALUE}\n`) }))).toBe(VALUE);
  });

  test.each([
    ["others can read", 0o644, "others can read it"],
    ["the group can read", 0o640, "others can read it"],
    ["others can write", 0o622, "others can write to it"],
  ])("that %s is refused", async (_, mode, why) => {
    await expect(open({ file: place("loose", VALUE, mode) })).rejects.toMatchObject({
      code: "unauthenticated",
      message: expect.stringContaining(why),
    });
  });

  test("that is missing, a folder or empty is refused", async () => {
    for (const path of [join(scratch.path, "missing"), scratch.path, place("empty", "")])
      await expect(open({ file: path })).rejects.toMatchObject({ code: "unauthenticated" });
    await expect(open({ file: join(scratch.path, "missing") })).rejects.toMatchObject({
      hint: `write the value to ${join(scratch.path, "missing")}, and chmod 600`,
    });
  });

  test("of a repository is refused, also through a link", async () => {
    const repo = join(scratch.path, "repo");
    mkdirSync(join(repo, ".git"), { recursive: true });
    const inside = place("repo/token", VALUE);
    const link = join(scratch.path, "link");
    symlinkSync(inside, link);
    for (const path of [inside, link])
      await expect(open({ file: path })).rejects.toMatchObject({
        message: expect.stringContaining("in the repository"),
      });
  });

  test("that the sandbox sees is refused, also through a link", async () => {
    mkdirSync(join(scratch.path, "mounted"));
    symlinkSync(join(scratch.path, "mounted"), join(scratch.path, "other-name"));
    const file = place("mounted/token", VALUE);
    const visible = [join(scratch.path, "other-name")];
    await expect(open({ file }, { visible })).rejects.toMatchObject({
      message: expect.stringContaining("the sandbox sees"),
    });
  });
});

describe("a program", () => {
  test("gives the line that it prints", async () => {
    expect(await valueNow(await open({ command: ["printf", `${VALUE}\n`] }))).toBe(VALUE);
    expect(await valueNow(await open({ command: ["/usr/bin/printf", '{ "value": "%s" }', VALUE] }))).toBe(VALUE);
  });

  test.each([
    ["fails", ["false"], "exited with 1"],
    ["is missing", ["no-such-program"], "is not in PATH"],
    ["can't be run", ["/etc/passwd"], "can't be run (EACCES)"],
    ["prints nothing", ["true"], "printed nothing"],
    ["prints two lines", ["printf", "first-line\nsecond-line"], "printed more than one line"],
    ["prints too much", ["yes"], "printed more than 65536 bytes"],
    ["prints half JSON", ["printf", '{ "value": "abcdefgh"'], "starts like JSON and is none"],
    ["prints JSON without a value", ["printf", '{ "token": "abcdefgh" }'], 'without a text named "value"'],
    ["prints a bad time", ["printf", '{ "value": "abcdefgh", "expiresAt": "soon" }'], "no ISO 8601 time"],
    ["prints an old value", ["printf", '{ "value": "abcdefgh", "expiresAt": "2020-01-01T00:00:00Z" }'], "has expired"],
  ])("that %s is refused", async (_, command, why) => {
    const failure = await open({ command }).catch((error: Error) => error);
    expect(failure).toMatchObject({ code: "unauthenticated", message: expect.stringContaining(why) });
    expect((failure as Error).message).not.toMatch(/abcdefgh|first-line/);
  });

  test("that hangs is killed with what it started", async () => {
    const pids = join(scratch.path, "pids");
    // The second child leaves the session, and with it the process group.
    const daemon = `setsid sh -c 'echo $$ >> ${pids}; exec sleep 1000' &`;
    const command = [program("hangs", `sleep 1000 & echo $$ $! > ${pids}; ${daemon} wait`)];
    await expect(open({ command, timeout: 2_000 })).rejects.toMatchObject({
      code: "unauthenticated",
      message: expect.stringContaining("was not done after 2000 ms"),
    });
    const started = readFileSync(pids, "utf8").trim().split(/\s+/).map(Number);
    expect(started.length).toBe(3);
    for (const pid of started) await expect.poll(() => isAlive(pid)).toBe(false);
  });

  test("that hangs is killed also while it is being replaced by another, again and again", async () => {
    const again = program("again", 'exec "$0"');
    const command = [program("starts", `setsid ${again} & sleep 1000`)];
    const running = (): number[] =>
      readdirSync("/proc")
        .map(Number)
        .filter((pid) => pid > 0 && isAlive(pid) && commandOf(pid).includes(again));
    try {
      for (let round = 0; round < 10; round++) {
        await expect(open({ command, timeout: 300 })).rejects.toMatchObject({ code: "unauthenticated" });
        // Between two programs a process has no arguments for a moment.
        expect(Array.from({ length: 20 }, running).flat()).toEqual([]);
      }
    } finally {
      for (const pid of Array.from({ length: 20 }, running).flat()) killNow(pid);
    }
  });

  test("is stopped when opening is", async () => {
    const ended = new AbortController();
    const opening = open({ command: ["sleep", "1000"] }, { signal: ended.signal });
    ended.abort(new Error("enough"));
    await expect(opening).rejects.toThrow("enough");
  });

  test("in a repository is refused", async () => {
    mkdirSync(join(scratch.path, "other/.git"), { recursive: true });
    await expect(open({ command: [program("other/get", `echo ${VALUE}`)] })).rejects.toMatchObject({
      message: expect.stringContaining("is in a repository"),
    });
  });

  test("is asked again before its value expires, once for all who wait", async () => {
    const log = join(scratch.path, "log");
    const expires = join(scratch.path, "expires");
    const expireAt = (time: number): void => writeFileSync(expires, new Date(time).toISOString());
    const script = `echo x >> ${log}; printf '{ "value": "value-%s-0123", "expiresAt": "%s" }' "$(wc -l < ${log} | tr -d ' ')" "$(cat ${expires})"`;
    vi.useFakeTimers({ toFake: ["Date"] });
    expireAt(Date.now() + 3_600_000);
    const secrets = await open({ command: [program("expires.sh", script)] });
    vi.setSystemTime(Date.now() + 3_500_000);
    expect(await valueNow(secrets)).toBe("value-1-0123");
    vi.setSystemTime(Date.now() + 50_000);
    expireAt(Date.now() + 3_600_000);
    expect(await Promise.all([1, 2, 3].map(() => valueNow(secrets)))).toEqual(Array(3).fill("value-2-0123"));
    expect(readFileSync(log, "utf8")).toBe("x\nx\n");
  });

  test("is masked in the answer to its request, however often it was fetched again meanwhile", async () => {
    const [count, expires] = [join(scratch.path, "count"), join(scratch.path, "expires-often")];
    vi.useFakeTimers({ toFake: ["Date"] });
    const expireSoon = (): void => writeFileSync(expires, new Date(Date.now() + 100_000).toISOString());
    const script = `echo x >> ${count}; printf '{ "value": "value-%s-0123", "expiresAt": "%s" }' "$(wc -l < ${count} | tr -d ' ')" "$(cat ${expires})"`;
    expireSoon();
    const secrets = await open({ command: [program("often.sh", script)] });
    const changes = secrets.broker.changesOf("a.test", 443, "GET");
    const { headers } = (await changes?.ofRequest({ path: "/", headers: [["x-key", secrets.env["KEY"] ?? ""]] })) ?? {};
    expect(headers?.[0]).toEqual(["x-key", "value-1-0123"]);
    for (let at = 2; at < 20; at++) {
      vi.setSystemTime(Date.now() + 99_000);
      expireSoon();
      expect(await valueNow(secrets)).toBe(`value-${at}-0123`);
    }
    expect(changes?.ofHeaders([["x-reflected", "value-1-0123"]])).toEqual([["x-reflected", secrets.env["KEY"]]]);
    const body = changes?.ofBody([])?.(Readable.from([Buffer.from("value-1-0123 value-19-0123")]));
    expect(await text(body as AsyncIterable<Buffer>)).toBe(`${secrets.env["KEY"]} ${secrets.env["KEY"]}`);
  });

  test("that still runs when the secret is removed: its value is forgotten, too", async () => {
    const [pipe, later] = [join(scratch.path, "pipe"), join(scratch.path, "later")];
    vi.useFakeTimers({ toFake: ["Date"] });
    const expiresAt = new Date(Date.now() + 600_000).toISOString();
    const answer = (value: string): string => `printf '{ "value": "${value}", "expiresAt": "${expiresAt}" }'`;
    const script = `if test -e ${later}; then cat ${pipe} >/dev/null; ${answer("too-late-0123456789")}; else ${answer(VALUE)}; fi`;
    execFileSync("mkfifo", [pipe]);
    const secrets = await open({ command: [program("late.sh", script)] });
    writeFileSync(later, "");
    vi.setSystemTime(Date.now() + 580_000);
    const asked = valueNow(secrets);
    asked.catch(() => undefined);
    const writing = writeFile(pipe, ""); // opens once the program reads
    secrets.close();
    await writing;
    await expect(asked).rejects.toMatchObject({ status: 502 });
    expect(redact("too-late-0123456789")).toBe("too-late-0123456789");
    expect(redact(VALUE)).toBe(VALUE);
  });

  test("that fails later: the old value is used until it expires, then requests are refused by name", async () => {
    const fails = join(scratch.path, "fails");
    vi.useFakeTimers({ toFake: ["Date"] });
    const expiresAt = new Date(Date.now() + 600_000).toISOString();
    const script = `test -e ${fails} && exit 1; printf '{ "value": "${VALUE}", "expiresAt": "${expiresAt}" }'`;
    const secrets = await open({ command: [program("fails.sh", script)] });
    writeFileSync(fails, "");
    vi.setSystemTime(Date.now() + 580_000);
    expect(await valueNow(secrets)).toBe(VALUE);
    vi.setSystemTime(Date.now() + 30_000);
    await expect(valueNow(secrets)).rejects.toMatchObject({
      status: 502,
      message: "the value of secret KEY can't be had",
    });
  });
});

function killNow(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It is gone.
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

function isAlive(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(" ")[2] !== "Z";
  } catch {
    return false;
  }
}
