import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { SandboxEvent } from "../../contracts/types.js";
import { createRecord, readRecord, updateRecord } from "../../src/ledger/records.js";
import { currentOwner } from "../../src/machine/owner.js";
import type { Sandbox, SandboxOptions } from "../../src/sandbox/types.js";
import { listSandboxes, openSandbox, reap, removeSandbox } from "../../src/sandbox.js";
import { type Child, compileSources, startChild } from "../support/run/compiled.js";
import { createRepository, createScratch, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
let compiled: ReturnType<typeof compileSources>;
const opened: Sandbox[] = [];
beforeAll(() => {
  compiled = compileSources({ withGuests: true });
});
afterAll(() => compiled.remove());
beforeEach(() => {
  scratch = createScratch();
});
afterEach(async () => {
  for (const sandbox of opened.splice(0)) await sandbox.teardown();
  for (const { id } of await listSandboxes()) await removeSandbox(id);
  scratch.remove();
});

/** Without isolation, which opens fastest and has nothing to do with names. */
async function open(opts: SandboxOptions = {}): Promise<Sandbox> {
  const how =
    opts.id === undefined && opts.ifExists === undefined ? ({ isolation: "none", network: "full" } as const) : {};
  const sandbox = await openSandbox({ backend: "local", ...how, ...opts });
  opened.push(sandbox);
  return sandbox;
}

async function hear(child: Child): Promise<Record<string, string>> {
  return JSON.parse(await child.line()) as Record<string, string>;
}

const claims = (): string[] => readdirSync(join(scratch.home, "names"));
const dead = { ...currentOwner(), startTime: "1" };

describe("a name", () => {
  test("is the sandbox's own, and is free again after it", async () => {
    const before = Date.now();
    const labels = { team: "blue", "app/version": "1.2" };
    const first = await open({ name: "mine", labels });
    expect(first).toMatchObject({ name: "mine", labels });
    expect(Object.isFrozen(first.labels)).toBe(true);
    expect(Date.parse(first.createdAt)).toBeGreaterThanOrEqual(before - 1);
    await expect(open({ name: "mine" })).rejects.toMatchObject({
      code: "conflict",
      retryable: false,
      message: `The name "mine" is in use: sandbox ${first.id} has it`,
      hint: expect.stringContaining('ifExists: "reopen"') as string,
    });
    expect(readdirSync(join(scratch.home, "sandboxes"))).toEqual([first.id]);
    await first.teardown();
    expect(claims()).toEqual([]);
    const second = await open({ name: "mine" });
    expect(second.id).not.toBe(first.id);
    expect(second).toMatchObject({ name: "mine", labels: {} });
  });

  test.each([
    ["", "must match"],
    ["../x", "must match"],
    ["a/b", "must match"],
    [".", "must match"],
    ["..", "must match"],
    ["-x", "must match"],
    ["Upper", "must match"],
    ["a\0b", "must match"],
    ["a\nb", "must match"],
    ["\u001b[31m", "must match"],
    ["x".repeat(64), "must match"],
    ["ä", "must match"],
    ["0123456789abcdef", "looks like the id"],
  ])("%j is refused, and nothing is made", async (name, why) => {
    await expect(open({ name })).rejects.toMatchObject({
      code: "invalid_argument",
      hint: expect.any(String) as string,
    });
    await expect(open({ name })).rejects.toThrow(why);
    await expect(open({ name })).rejects.toThrow(/^Invalid (options\.)?name/);
    expect(await listSandboxes()).toEqual([]);
  });

  test("may be as long as 63 characters, and be called like anything", async () => {
    for (const name of ["x".repeat(63), "con", "a", "0", "record.json", "a.tmp", "constructor", "__proto__".slice(2)]) {
      const sandbox = await open({ name });
      expect((await listSandboxes({ name })).map(({ id }) => id)).toEqual([sandbox.id]);
      await sandbox.teardown();
    }
  });

  test("that is the id of a sandbox is in use", async () => {
    await createRecord({ id: "old-style-id", backend: "local", workDir: "/x" });
    await expect(open({ name: "old-style-id" })).rejects.toMatchObject({ code: "conflict" });
    await updateRecord("old-style-id", { owner: dead });
  });

  test("of a failed opening is free", async () => {
    await expect(open({ name: "mine", repo: join(scratch.path, "nothing") })).rejects.toThrow();
    expect(claims()).toEqual([]);
    const aborted = AbortSignal.abort();
    await expect(open({ name: "mine", signal: aborted })).rejects.toMatchObject({ code: "aborted" });
    expect(claims()).toEqual([]);
  });

  test("stays with a kept sandbox, which is found by it", async () => {
    const made = await open({ name: "mine", keep: true, labels: { a: "1" } });
    await made.writeFile("notes", "kept");
    await made.teardown();
    await expect(open({ name: "mine" })).rejects.toMatchObject({ code: "conflict" });
    const again = await open({ id: "mine" });
    expect(again).toMatchObject({ id: made.id, name: "mine", labels: { a: "1" }, createdAt: made.createdAt });
    expect(await again.readFile("notes")).toBe("kept");
    await again.teardown();
    for (const wrong of [{ name: "other" }, { labels: { a: "2" } }]) {
      await expect(open({ id: "mine", ...wrong })).rejects.toMatchObject({ code: "invalid_argument" });
    }
    await removeSandbox("mine");
    await expect(open({ id: "mine" })).rejects.toMatchObject({ code: "not_found" });
    await expect(removeSandbox("mine")).rejects.toMatchObject({ code: "not_found" });
    expect(claims()).toEqual([]);
  });

  test("whose owner died is taken over, and reap frees it", async () => {
    const first = await open({ name: "mine" });
    await updateRecord(first.id, { owner: dead });
    const second = await open({ name: "mine" });
    expect(second.id).not.toBe(first.id);
    expect(await readRecord(first.id)).toBeUndefined();
    await updateRecord(second.id, { owner: dead });
    expect((await reap()).removed).toEqual([second.id]);
    expect(claims()).toEqual([]);
  });

  test("that a process claimed and never used is freed, and a damaged claim says so", async () => {
    await (await open()).teardown();
    const claim = (name: string, owner: object): void => {
      mkdirSync(join(scratch.home, "names"), { recursive: true, mode: 0o700 });
      writeFileSync(join(scratch.home, "names", `${name}.json`), JSON.stringify({ id: "0123456789abcdef", owner }));
    };
    claim("stale", dead);
    claim("busy", currentOwner());
    claim("foreign", { ...dead, pidNs: "pid:[1]" });
    expect((await open({ name: "stale" })).name).toBe("stale");
    for (const name of ["busy", "foreign"]) {
      await expect(open({ name })).rejects.toMatchObject({ code: "conflict" });
      await expect(open({ id: name })).rejects.toMatchObject({ code: "not_found" });
    }
    claim("gone", dead);
    writeFileSync(join(scratch.home, "names", "bad.json"), "{");
    await reap();
    expect(claims().sort()).toEqual(["bad.json", "busy.json", "foreign.json", "stale.json"]);
    await expect(open({ name: "bad" })).rejects.toMatchObject({ code: "tampered" });
  });

  test("goes to exactly one of many processes, and to the next when that one is killed", async () => {
    const options = { name: "mine", isolation: "none", network: "full" };
    const env = { GLOVEBOX_HOME: scratch.home };
    const children = Array.from({ length: 4 }, () =>
      startChild(compiled.directory, "claim-name.mjs", [JSON.stringify(options)], env),
    );
    const said = await Promise.all(children.map(hear));
    const winners = said.filter((line) => "id" in line);
    expect(winners).toHaveLength(1);
    expect(said.filter((line) => "code" in line).map((line) => line["code"])).toEqual([
      "conflict",
      "conflict",
      "conflict",
    ]);
    const winner = children[said.findIndex((line) => "id" in line)];
    winner?.kill();
    await winner?.ended;
    const next = await open({ name: "mine" });
    expect(next.id).not.toBe(winners[0]?.["id"]);
    expect((await listSandboxes()).map(({ id }) => id)).toEqual([next.id]);
  });
});

describe("ifExists: reopen", () => {
  const options = { name: "mine", ifExists: "reopen", isolation: "none", network: "full", keep: true } as const;

  test("makes one, then hands back the live one, then reopens the kept one", async () => {
    const first = await open(options);
    const handle = await open(options);
    expect(handle.id).toBe(first.id);
    await first.writeFile("notes", "x");
    await first.teardown();
    await expect(handle.readFile("notes")).rejects.toMatchObject({ code: "closed" });
    const again = await open(options);
    expect(again.id).toBe(first.id);
    expect(await again.readFile("notes")).toBe("x");
  });

  test("makes exactly one, however many ask at once", async () => {
    const all = await Promise.all(Array.from({ length: 8 }, () => open(options)));
    expect(new Set(all.map(({ id }) => id)).size).toBe(1);
    expect(await listSandboxes()).toHaveLength(1);
  });

  test("makes a new one where a dead process left one that is not kept", async () => {
    const made = { isolation: "none", network: "full" };
    const first = await open({ name: "mine" });
    const child = startChild(compiled.directory, "claim-name.mjs", [JSON.stringify({ ...made, name: "left" })], {
      GLOVEBOX_HOME: scratch.home,
    });
    const { id } = await hear(child);
    child.kill();
    await child.ended;
    const next = await open({ ...options, name: "left" });
    expect(next.id).not.toBe(id);
    expect((await listSandboxes()).map((each) => each.id).sort()).toEqual([first.id, next.id].sort());
  });

  test("refuses what differs from what the sandbox was made with", async () => {
    const repo = createRepository(join(scratch.path, "repo"));
    const made = { ...options, repo, branch: "work" } as const;
    const first = await open(made);
    expect((await open(made)).id).toBe(first.id);
    await first.teardown();
    const other = createRepository(join(scratch.path, "other"));
    for (const differs of [{ repo: other }, { branch: "more" }, { baseDir: scratch.path, repo: undefined }]) {
      const { repo: _, branch: __, ...rest } = made;
      const asked = JSON.parse(JSON.stringify({ ...rest, repo, ...differs })) as SandboxOptions;
      await expect(open(asked), JSON.stringify(differs)).rejects.toMatchObject({ code: "conflict", retryable: false });
    }
    await expect(open({ ...made, network: "none" })).rejects.toMatchObject({ code: expect.any(String) as string });
    await expect(open({ ...made, labels: { a: "b" } })).rejects.toMatchObject({ code: "conflict" });
    expect((await open(options)).id).toBe(first.id);
  });

  test("needs a name, and excludes id", async () => {
    await expect(open({ ifExists: "reopen" })).rejects.toThrow(/ifExists .* needs the option name/);
    await expect(open({ id: "x", ifExists: "fail" })).rejects.toThrow(/ifExists .* does not go together with id/);
    await expect(open({ name: "x", ifExists: "maybe" as never })).rejects.toMatchObject({ code: "invalid_argument" });
  });
});

describe("labels", () => {
  test.each([
    [{ "": "x" }, "key"],
    [{ "a b": "x" }, "key"],
    [{ ["k".repeat(64)]: "x" }, "key"],
    [{ "a\nb": "x" }, "key"],
    [{ a: "x".repeat(256) }, "256 characters"],
    [{ a: "x\u001b[31m" }, "control character"],
    [{ a: "x\ny" }, "control character"],
    [{ a: "\u202eevil" }, "control character"],
    [{ a: "\u061cevil" }, "control character"],
    [{ a: 1 }, "labels.a"],
    [["a"], "an object"],
    ["a=b", "an object"],
    [Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, "x"])), "17 labels, at most 16"],
  ])("%j are refused", async (labels, why) => {
    await expect(open({ labels: labels as never })).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(open({ labels: labels as never })).rejects.toThrow(why);
  });

  test("find sandboxes, also without a name", async () => {
    const labels = Object.fromEntries(Array.from({ length: 16 }, (_, n) => [`k/${n}`, "ü".repeat(255)]));
    const [a, b, c] = [
      await open({ labels: { team: "blue" } }),
      await open({ labels: { team: "red" } }),
      await open({ labels }),
    ];
    const ids = async (filter: Parameters<typeof listSandboxes>[0]): Promise<string[]> =>
      (await listSandboxes(filter)).map(({ id }) => id);
    expect(await ids({ labels: { team: "blue" } })).toEqual([a.id]);
    expect(await ids({ labels: { team: "red" } })).toEqual([b.id]);
    expect(await ids({ labels })).toEqual([c.id]);
    expect(await ids({ labels: { toString: "x" } })).toEqual([]);
    expect(await ids({ labels: { team: "blue", more: "x" } })).toEqual([]);
    expect((await ids({})).sort()).toEqual([a.id, b.id, c.id].sort());
    await expect(listSandboxes({ label: {} } as never)).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test("go to forks; the name does not", async () => {
    const sandbox = await open({ name: "mine", labels: { team: "blue" } });
    const fork = await sandbox.fork();
    opened.push(fork);
    expect(fork.name).toBeUndefined();
    expect("name" in fork).toBe(false);
    expect(fork.labels).toEqual({ team: "blue" });
    expect((await listSandboxes({ labels: { team: "blue" } })).map(({ id }) => id).sort()).toEqual(
      [sandbox.id, fork.id].sort(),
    );
    await fork.teardown();
    expect((await open({ id: "mine" })).id).toBe(sandbox.id);
  });
});

describe("a second handle", () => {
  test("works like the first, and owns nothing", async () => {
    const first = await open({ name: "mine", labels: { a: "1" } });
    const handle = await open({ id: first.id });
    expect(handle).toMatchObject({ id: first.id, name: "mine", labels: { a: "1" }, createdAt: first.createdAt });
    await handle.writeFile("dir/file", "x");
    await handle.setWorkdir("dir");
    expect(await handle.readFile("file")).toBe("x");
    expect(await first.readFile("file")).toBeNull();
    const child = await handle.spawn({ argv: ["sleep", "60"] });
    expect((await first.processes()).map(({ id }) => id)).toEqual([child.id]);
    {
      await using more = await open({ id: "mine" });
      expect(await more.readFile("dir/file")).toBe("x");
    }
    await handle.teardown();
    await handle.teardown();
    const message = expect.stringContaining("This handle") as unknown;
    await expect(handle.exec({ argv: ["true"] })).rejects.toMatchObject({ code: "closed", message });
    await expect(handle.readFile("file")).rejects.toMatchObject({ code: "closed", message });
    // What it started belongs to the sandbox.
    expect(await first.processes()).toHaveLength(1);
    expect((await first.exec({ argv: ["cat", "dir/file"] })).stdout).toBe("x");
    await first.teardown();
    await child.wait().catch(() => undefined);
  });

  test("shares the ports, and leaves them open", async () => {
    const first = await open();
    const handle = await open({ id: first.id });
    const program = `const server = require("net").createServer((socket) => socket.end("hello"));
      server.listen(0, "127.0.0.1", () => console.log(server.address().port));`;
    const server = await first.spawn({ argv: [process.execPath, "-e", program], background: true });
    const seen = await handle.process(server.id);
    const port = Number(Buffer.from((await seen.read({ wait: 30_000 })).data).toString());
    const url = new URL(await handle.url(port));
    expect(await first.url(port)).toBe(String(url).replace(/\/$/, ""));
    await handle.teardown();
    await expect(seen.read()).rejects.toMatchObject({ code: "closed" });
    expect(await text(connect(Number(url.port), url.hostname))).toBe("hello");
  });

  test("uses the sandbox, which is closed when neither is used", async () => {
    const first = await open({ idleTimeout: 1_000 });
    const handle = await open({ id: first.id });
    const waiting = handle.waitForPort(1, { timeout: 3_000 });
    await expect(waiting).rejects.toMatchObject({ code: "unavailable" });
    expect((await first.exec({ argv: ["true"] })).exitCode).toBe(0);
    await handle.teardown();
    await expect.poll(async () => await listSandboxes(), { timeout: 30_000 }).toEqual([]);
    await expect(first.exec({ argv: ["true"] })).rejects.toMatchObject({
      code: "closed",
      message: expect.stringContaining("idleTimeout") as string,
    });
  });

  test("ends with the sandbox", async () => {
    const first = await open();
    const handle = await open({ id: first.id });
    const running = handle.exec({ argv: ["sleep", "60"] });
    const outcome = running.then(
      () => "a result",
      (error: { code: string }) => error.code,
    );
    await expect.poll(async () => (await first.exec({ argv: ["true"] })).exitCode).toBe(0);
    await first.teardown();
    expect(await outcome).toBe("closed");
    await expect(handle.exec({ argv: ["true"] })).rejects.toMatchObject({ code: "closed" });
    await expect(open({ id: first.id })).rejects.toMatchObject({ code: "not_found" });
  });

  test("of a handle is one of the sandbox, and so is one of a fork", async () => {
    const first = await open();
    const handle = await open({ id: first.id });
    const third = await open({ id: handle.id });
    await handle.teardown();
    expect((await third.exec({ argv: ["true"] })).exitCode).toBe(0);
    const fork = await first.fork();
    opened.push(fork);
    expect((await open({ id: fork.id })).id).toBe(fork.id);
  });

  test.each<[string, SandboxOptions]>([
    ["env", { env: { SECRET_TOKEN: "another-value" } }],
    ["keep", { keep: true }],
    ["maxOutput", { maxOutput: 5 }],
    ["operationTimeout", { operationTimeout: 5_000 }],
    ["allow", { allow: ["ls"] }],
    ["network", { network: "none" }],
    ["isolation", { isolation: "required" }],
    ["limits", { limits: { pids: 5 } }],
    ["labels", { labels: { b: "2" } }],
    ["name", { name: "other" }],
    ["githubToken", { githubToken: "another-value" }],
    ["mounts", { mounts: [{ source: "/srv" }] }],
  ])("with another %s is a conflict, which shows no secret", async (option, differs) => {
    const first = await open({ env: { SECRET_TOKEN: "one-value" } });
    const failure = await open({ id: first.id, ...differs }).catch((error: unknown) => error as Error);
    expect(failure).toMatchObject({ code: "conflict", hint: expect.stringContaining(`omit ${option}`) as string });
    expect(String(failure)).not.toContain("another-value");
    expect((await first.exec({ argv: ["true"] })).exitCode).toBe(0);
  });

  test("may say what the sandbox was opened with", async () => {
    const own = { env: { A: "1" }, labels: { a: "b" }, maxOutput: 1_000 };
    const first = await open(own);
    const handle = await open({ id: first.id, ...own, keep: false, isolation: "none", network: "full" });
    expect((await handle.shell('printf "$A"')).stdout).toBe("1");
    await expect(openSandbox({ id: first.id, backend: "docker" })).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test("hears what is done through it; the owner hears everything", async () => {
    const [owner, second]: [SandboxEvent[], SandboxEvent[]] = [[], []];
    const first = await open({ onEvent: (event) => owner.push(event) });
    const handle = await open({ id: first.id, onEvent: (event) => second.push(event) });
    await first.exec({ argv: ["true"] });
    expect(second).toEqual([]);
    await handle.exec({ argv: ["true"] });
    expect(second.map(({ type }) => type)).toEqual(["exec", "exit"]);
    expect(owner.filter(({ type }) => type === "exec")).toHaveLength(2);
    await handle.teardown();
    expect(second).toHaveLength(2);
  });

  test("waits for a sandbox that is being closed or opened by another call", async () => {
    const first = await open({ keep: true });
    await first.writeFile("a", "1");
    const closing = first.teardown();
    const [second, third] = await Promise.all([open({ id: first.id }), open({ id: first.id })]);
    await closing;
    expect(await second.readFile("a")).toBe("1");
    expect(await third.readFile("a")).toBe("1");
    await second.teardown();
    await expect(third.readFile("a")).rejects.toMatchObject({ code: "closed" });
  });

  test("is not for other processes", async () => {
    const options = { name: "mine", isolation: "none", network: "full" };
    const child = startChild(compiled.directory, "claim-name.mjs", [JSON.stringify(options)], {
      GLOVEBOX_HOME: scratch.home,
    });
    const { id } = await hear(child);
    await expect(open({ id: "mine" })).rejects.toMatchObject({ code: "conflict" });
    await expect(open({ name: "mine", ifExists: "reopen" })).rejects.toMatchObject({ code: "conflict" });
    await expect(removeSandbox("mine")).rejects.toMatchObject({ code: "conflict" });
    child.kill();
    await child.ended;
    expect((await listSandboxes()).map((each) => each.id)).toEqual([id]);
  });
});
