import { once } from "node:events";
import { statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Sandbox, Snapshot } from "@vercel/sandbox";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FakeMachine, removeFiles } from "../../../fakes/vercel/machine.js";
import { FakeVercel } from "../../../fakes/vercel/server.js";
import { childrenOf } from "../../../support/processes/descendants.js";

// The stand-in itself, by the real SDK: what it lets pass, no other test can find.

let service: FakeVercel;

beforeAll(async () => {
  service = await FakeVercel.start();
});

afterAll(() => service.close());

/** What a refused call says: status, code and the rest of the error. */
async function refusalOf(call: Promise<unknown>): Promise<unknown> {
  const error = (await call.then(
    () => undefined,
    (caught: unknown) => caught,
  )) as { response?: Response; json?: { error: { message?: string } } } | undefined;
  const { message: _, ...said } = error?.json?.error ?? {};
  return { status: error?.response?.status, ...said };
}

describe("who is let in", () => {
  test.each([
    [{ token: "another-token" }, { status: 403, code: "forbidden", invalidToken: true }],
    [{ teamId: "team_other" }, { status: 403, code: "forbidden" }],
    [{ projectId: "prj_other" }, { status: 404, code: "not_found" }],
  ])("%j is not", async (other, expected) => {
    const access = { ...service.options, ...other };
    expect(await refusalOf(Sandbox.create(access))).toEqual(expected);
    expect(await refusalOf(Sandbox.get({ ...access, name: "x" }))).toEqual(expected);
    expect(await refusalOf(Sandbox.list(access))).toEqual(expected);
  });

  test("a session is refused to another team as well", async () => {
    const sandbox = await Sandbox.create({ ...service.options, persistent: false });
    const path = `/v2/sandboxes/sessions/${sandbox.currentSession().sessionId}`;
    const headers = { authorization: `Bearer ${service.options.token}` };
    expect((await fetch(`${service.api}${path}?teamId=team_other`, { headers })).status).toBe(403);
    expect((await fetch(`${service.api}${path}`, { headers })).status).toBe(403);
    await sandbox.delete();
  });
});

describe("what is asked for", () => {
  test.each([
    ["an unknown field", { __surprise: true }],
    ["a name with a space", { name: "a b" }],
    ["sixteen ports", { ports: Array.from({ length: 16 }, (_, n) => 3000 + n) }],
    ["six tags", { tags: { a: "", b: "", c: "", d: "", e: "", f: "" } }],
    ["no snapshots to keep", { keepLastSnapshots: { count: 0 } }],
    ["a timeout of less than a second", { timeout: 999 }],
    ["snapshots that expire within a day", { snapshotExpiration: 86_399_999 }],
    ["kept snapshots that expire within a day", { keepLastSnapshots: { count: 1, expiration: 1 } }],
  ])("%s is refused", async (_, params) => {
    const refused = Sandbox.create({ ...service.options, ...params });
    expect(await refusalOf(refused)).toEqual({ status: 400, code: "bad_request" });
  });

  test("a timeout beyond the plan is refused, at the start and later", async () => {
    const expected = { status: 400, code: "sandbox_timeout_invalid" };
    expect(await refusalOf(Sandbox.create({ ...service.options, timeout: 25 * 3_600_000 }))).toEqual(expected);
    const sandbox = await Sandbox.create({ ...service.options, persistent: false, timeout: 60_000 });
    expect(await refusalOf(sandbox.currentSession().extendTimeout(24 * 3_600_000))).toEqual(expected);
    await sandbox.currentSession().extendTimeout(60_000);
    expect(sandbox.currentSession().timeout).toBe(120_000);
    await sandbox.delete();
  });
});

describe("a persistent sandbox", () => {
  test("has a network of its own, and its session another one until it stops", async () => {
    const sandbox = await Sandbox.create({ ...service.options, networkPolicy: "allow-all" });
    await sandbox.currentSession().update({ networkPolicy: "deny-all" });
    expect(sandbox.currentSession().networkPolicy).toBe("deny-all");
    await sandbox.stop();
    const { name } = sandbox;
    const resumed = await Sandbox.get({ ...service.options, name, resume: true });
    expect([resumed.currentSession().networkPolicy, resumed.networkPolicy]).toEqual(["allow-all", "allow-all"]);
    await resumed.update({ networkPolicy: { allow: ["example.com"] } });
    const again = await Sandbox.get({ ...service.options, name });
    const allowed = { allow: ["example.com"] };
    expect([again.currentSession().networkPolicy, again.networkPolicy]).toEqual([allowed, allowed]);
    await again.delete({ deleteOrphanSnapshots: true });
    expect(service.census()).toEqual([]);
  });

  test("goes on from its last snapshot, whoever asked for it, and keeps as many as it is told", async () => {
    const sandbox = await Sandbox.create({
      ...service.options,
      snapshotExpiration: 0,
      keepLastSnapshots: { count: 1 },
    });
    const { name } = sandbox;
    const { snapshotId } = await sandbox.currentSession().snapshot();
    const found = await Sandbox.get({ ...service.options, name });
    expect([found.currentSnapshotId, found.status]).toEqual([snapshotId, "stopped"]);
    const resumed = await Sandbox.get({ ...service.options, name, resume: true });
    const { snapshot } = await resumed.stop();
    expect(snapshot?.expiresAt).toBeUndefined();
    // Also one that was asked for makes room for the next.
    expect((await Snapshot.get({ ...service.options, snapshotId })).status).toBe("deleted");
    const left = await (await Snapshot.list({ ...service.options, name })).toArray();
    expect(left.map(({ id }) => id)).toEqual([snapshot?.id]);
    // A sandbox goes without its snapshots.
    await resumed.delete();
    expect(service.census()).toEqual([snapshot?.id]);
    await (await Snapshot.get({ ...service.options, snapshotId: snapshot?.id ?? "" })).delete();
    const gone = { type: "snapshot", snapshotId } as const;
    expect(await refusalOf(Sandbox.create({ ...service.options, source: gone }))).toEqual({
      status: 410,
      code: "snapshot_not_found",
    });
  });

  test("that is stopping answers 422, and an old session 410", async () => {
    const sandbox = await Sandbox.create({ ...service.options });
    const old = sandbox.currentSession();
    service.store.stopDelay = 500;
    const stopping = sandbox.stop();
    await expect.poll(() => service.store.session(old.sessionId).status).toBe("stopping");
    expect(await refusalOf(old.readFile({ path: "/x" }))).toEqual({ status: 422, code: "sandbox_stopping" });
    await stopping;
    service.store.stopDelay = 0;
    await Sandbox.get({ ...service.options, name: sandbox.name, resume: true });
    expect(await refusalOf(old.readFile({ path: "/x" }))).toEqual({ status: 410, code: "sandbox_stopped" });
    await sandbox.delete({ deleteOrphanSnapshots: true });
    expect(service.census()).toEqual([]);
  });
});

describe("a machine", () => {
  test("shows a file before it is whole", async () => {
    const sandbox = await Sandbox.create({ ...service.options, persistent: false });
    const session = sandbox.currentSession();
    const path = join(service.store.session(session.sessionId).files, "tmp", "file");
    const sizes = new Set<number>();
    let isWritten = false;
    const writing = session.writeFiles([{ path: "/tmp/file", content: "x".repeat(100_000) }]).finally(() => {
      isWritten = true;
    });
    // The stand-in runs in this process: between two parts of it there is always a turn of ours.
    while (!isWritten) {
      sizes.add(statSync(path, { throwIfNoEntry: false })?.size ?? 0);
      await nextTurn();
    }
    await writing;
    expect([...sizes].filter((size) => size > 0 && size < 100_000)).not.toEqual([]);
    expect((await session.readFileToBuffer({ path: "/tmp/file" }))?.length).toBe(100_000);
    await sandbox.delete();
  });

  test("passes an answer on that was given before the question arrived", async () => {
    const files = FakeMachine.makeFiles();
    const machine = await FakeMachine.start(files, true);
    try {
      const serve =
        "$|=1;$s=IO::Socket::INET->new(Listen=>9,LocalAddr=>'127.0.0.1');print $s->sockport,\"\\n\";" +
        'while($c=$s->accept){print $c "hello";close $c}';
      const server = machine.run({ command: "perl", args: ["-MIO::Socket", "-e", serve] });
      const [line] = (await once(server.child.stdout ?? process, "data")) as [Buffer];
      const gate = new URL(await machine.gate(Number(String(line))));
      const before = new Set(childrenOf(process.pid));
      const client = connect(Number(gate.port), gate.hostname);
      await once(client, "connect");
      // The gate has taken the connection. While nothing of this process runs, the server inside answers and closes.
      await expect.poll(() => childrenOf(process.pid).some((pid) => !before.has(pid)), { interval: 1 }).toBe(true);
      client.write("question");
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
      let said = "";
      client.on("data", (piece) => {
        said += String(piece);
      });
      await once(client, "close");
      expect(said).toBe("hello");
    } finally {
      await machine.stop();
      removeFiles(files);
    }
  });
});
