import { once } from "node:events";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { readRecord } from "../../../../src/ledger/records.js";
import { createVercelSandbox } from "../../../../src/sandbox/backends/vercel.js";
import { RelayLines, RelayStream } from "../../../../src/sandbox/guest.js";
import { deleteSnapshot, listSnapshots } from "../../../../src/sandbox/snapshots.js";
import type { Sandbox } from "../../../../src/sandbox/types.js";
import { listSandboxes, removeSandbox } from "../../../../src/sandbox.js";
import { FakeVercel } from "../../../fakes/vercel/server.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

let service: FakeVercel;
let scratch: Scratch;
const opened: Sandbox[] = [];

beforeAll(async () => {
  scratch = createScratch();
  service = await FakeVercel.start();
});

afterEach(async () => {
  service.faults.clear();
  await Promise.all(opened.splice(0).map((sandbox) => sandbox.teardown()));
});

afterAll(async () => {
  await service.close();
  scratch.remove();
});

async function open(opts: Parameters<typeof createVercelSandbox>[0] = {}): Promise<Sandbox> {
  const sandbox = await createVercelSandbox({ ...opts, vercel: { ...service.options, ...opts.vercel } });
  opened.push(sandbox);
  return sandbox;
}

/** Requests like this one that were made while something ran. */
async function requestsDuring(match: RegExp, work: () => Promise<unknown>): Promise<string[]> {
  const before = service.requests.length;
  await work();
  return service.requests
    .slice(before)
    .map(({ line }) => line)
    .filter((line) => match.test(line));
}

const COUNT = 'echo ran >> "$HOME/../tmp/runs"; wc -l < /tmp/runs';

describe("a command runs once", () => {
  test("when the answer to its letter is lost, and the SDK sends it again", async () => {
    const sandbox = await open();
    service.faults.add(/^POST .*\/fs\/write$/, "reset-after", 2);
    const letters = await requestsDuring(/fs\/write/, async () => {
      expect((await sandbox.shell(COUNT)).stdout.trim()).toBe("1");
      // Its letter follows the repeated one of the first command.
      expect((await sandbox.shell(COUNT)).stdout.trim()).toBe("2");
    });
    expect(letters.length).toBeGreaterThanOrEqual(3);
  });

  test("when the service fails with 503 and 429 first", async () => {
    const sandbox = await open();
    service.faults.add(/^POST .*\/fs\/write$/, { status: 503 });
    service.faults.add(/^POST .*\/fs\/write$/, { status: 429, retryAfter: 1 });
    expect((await sandbox.shell(COUNT)).stdout.trim()).toBe("1");
  });

  test("when the way is cut while it runs, and its output is whole", async () => {
    const sandbox = await open();
    service.faults.add(/^GET .*\/logs$/, "cut", 3);
    // The relay that listens now is dropped; the ones after it are cut off three times.
    await dropListener(sandbox);
    const result = await sandbox.shell('echo ran >> /tmp/runs; for i in 1 2 3 4 5 6; do echo "$i"; sleep 0.2; done');
    expect(result).toMatchObject({ exitCode: 0, stdout: "1\n2\n3\n4\n5\n6\n" });
    expect((await sandbox.shell("wc -l < /tmp/runs")).stdout.trim()).toBe("1");
  });
});

/** The next listener of this sandbox is a new one. */
async function dropListener(sandbox: Sandbox): Promise<void> {
  await sandbox.exec({
    argv: ["sh", "-c", "kill $(ps -eo pid,args | awk '/[r]elay (start|join)/ {print $1}' | head -n 1); true"],
  });
}

describe("streams that end", () => {
  test("a stream that stays open and says nothing is given up for another", async () => {
    const given: AbortSignal[] = [];
    const stream = new RelayStream(
      {
        decoder: new RelayLines(),
        async *listen(_how, _position, signal) {
          given.push(signal);
          yield "";
          await once(signal, "abort");
        },
        post: async () => undefined,
        fetch: async () => new Uint8Array(),
        verdict: () => undefined,
      },
      { silence: 50 },
    );
    await expect.poll(() => given.length).toBeGreaterThan(1);
    expect(given[0]?.aborted).toBe(true);
    stream.destroy();
  });

  test("cleanly and too early are no end of the command", async () => {
    service.faults.add(/^GET .*\/logs$/, "early-end", 2);
    const sandbox = await open();
    expect(await sandbox.exec({ argv: ["sh", "-c", "sleep 1; echo done; exit 3"] })).toMatchObject({
      exitCode: 3,
      stdout: "done\n",
    });
  });

  test("a listener that is killed inside is replaced, and the command goes on", async () => {
    const sandbox = await open();
    const child = await sandbox.spawn({ argv: ["sh", "-c", "echo one; sleep 2; echo two"] });
    const joins = await requestsDuring(/POST .*\/cmd/, async () => {
      await dropListener(sandbox);
      expect((await child.wait()).exitCode).toBe(0);
    });
    expect(joins.length).toBeGreaterThan(0);
    expect(await new Response(child.stdout).text()).toBe("one\ntwo\n");
  });
});

describe("a machine that is gone", () => {
  test("under a command is `backend_lost`, never an exit code, and nothing revives it", async () => {
    const sandbox = await open();
    let isUp = (): void => undefined;
    const up = new Promise<void>((resolve) => {
      isUp = resolve;
    });
    const call = sandbox.exec({ argv: ["sh", "-c", "echo up; sleep 60"], onStdout: () => isUp() });
    const outcome = expect(call).rejects.toMatchObject({ code: "backend_lost" });
    await up;
    const resumes = await requestsDuring(/resume=true/, async () => {
      await service.stopMachine(sandbox.id);
      await outcome;
      await expect(sandbox.exec({ argv: ["true"] })).rejects.toMatchObject({ code: "backend_lost" });
      await expect(sandbox.readFile("x")).rejects.toMatchObject({ code: "backend_lost" });
      await sandbox.teardown();
    });
    expect(resumes).toEqual([]);
  });

  test("after teardown every call is `closed`, without a request", async () => {
    const sandbox = await open();
    await sandbox.teardown();
    const requests = await requestsDuring(/./, async () => {
      await expect(sandbox.exec({ argv: ["true"] })).rejects.toMatchObject({ code: "closed" });
    });
    expect(requests).toEqual([]);
  });

  test("a machine that is stopping answers 422, and that is `backend_lost`", async () => {
    const sandbox = await open();
    service.faults.add(/^POST .*\/fs\/write$/, { status: 422, code: "sandbox_stopping" });
    await expect(sandbox.exec({ argv: ["true"] })).rejects.toMatchObject({ code: "backend_lost" });
  });
});

describe("creation", () => {
  test("a create whose answer is lost makes one machine, and it is used", async () => {
    service.faults.add(/^POST \/v3\/sandboxes$/, "reset-after");
    const sandbox = await open();
    expect(service.census().filter((name) => name.startsWith(sandbox.id))).toHaveLength(1);
    expect((await sandbox.exec({ argv: ["echo", "up"] })).stdout).toBe("up\n");
  });

  test.each([
    [{ status: 403, code: "forbidden", message: "Not authorized" }, "permission_denied"],
    [{ status: 401 }, "unauthenticated"],
    [{ status: 402, message: "Payment required" }, "limit_exceeded"],
    [{ status: 429, retryAfter: 60 }, "unavailable"],
    [{ status: 400, code: "bad_request", message: "Invalid image" }, "invalid_argument"],
  ] as const)("%j is %s, and nothing is left", async (fault, code) => {
    service.faults.add(/^POST \/v3\/sandboxes$/, fault, 3);
    const before = service.census();
    const known = await listSandboxes();
    await expect(open()).rejects.toMatchObject({ code, backend: "vercel", operation: "open" });
    expect(service.census()).toEqual(before);
    expect(await listSandboxes()).toEqual(known);
  });

  test.each([
    [{ status: 403, code: "forbidden", message: "Not authorized" }, "permission_denied", /may not use this team/],
    [
      { status: 403, code: "forbidden", message: "Not authorized", details: { invalidToken: true } },
      "unauthenticated",
      /not valid, or has expired/,
    ],
    [{ status: 429, retryAfter: 60 }, "unavailable", /wait 60 s/],
  ] as const)("%j of every request is %s, and leaves no record", async (fault, code, hint) => {
    const known = await listSandboxes();
    service.faults.add(/./, fault, 99);
    const before = service.requests.length;
    await expect(open()).rejects.toMatchObject({ code, hint: expect.stringMatching(hint) });
    expect(await listSandboxes()).toEqual(known);
    // Nothing was made, so there is nothing to ask for.
    expect(service.requests.length - before).toBe(1);
  });

  test("a create that was refused only after one whose answer was lost is looked after", async () => {
    service.faults.add(/^POST \/v3\/sandboxes$/, "reset-after");
    service.faults.add(/^POST \/v3\/sandboxes$/, { status: 402, message: "Payment required" });
    const before = service.census();
    await expect(open()).rejects.toMatchObject({ code: "limit_exceeded" });
    expect(service.census()).toEqual(before);
  });

  test("a token that expires is `unauthenticated` for what is opened then", async () => {
    service.hasExpired = true;
    try {
      await expect(open()).rejects.toMatchObject({ code: "unauthenticated", hint: expect.stringMatching(/expired/) });
    } finally {
      service.hasExpired = false;
    }
  });

  test("a token that expires while a sandbox is open is `unauthenticated`, and nothing is forgotten", async () => {
    const leaks: string[] = [];
    const sandbox = await open({ onEvent: ({ type, message }) => type === "leak" && leaks.push(message) });
    service.hasExpired = true;
    try {
      await expect(sandbox.exec({ argv: ["true"] })).rejects.toMatchObject({ code: "unauthenticated" });
      await sandbox.teardown();
    } finally {
      service.hasExpired = false;
    }
    expect(leaks).toHaveLength(1);
    await sandbox.teardown();
    expect(service.census().filter((name) => name.startsWith(sandbox.id))).toEqual([]);
    expect(await readRecord(sandbox.id)).toBeUndefined();
  });

  test.each([{ teamId: "team_other" }, { projectId: "prj_other" }])("%j is refused by the service", async (other) => {
    const known = await listSandboxes();
    await expect(open({ vercel: other })).rejects.toMatchObject({
      code: expect.stringMatching(/permission_denied|not_found/),
    });
    expect(await listSandboxes()).toEqual(known);
  });

  test("a guest that does not come up leaves no machine", async () => {
    service.faults.add(/^POST .*\/cmd$/, { status: 400, message: "no commands today" });
    const before = service.census();
    await expect(open()).rejects.toMatchObject({ message: expect.stringContaining("no commands today") });
    expect(service.census()).toEqual(before);
  });

  test("an abort leaves no machine", async () => {
    const controller = new AbortController();
    const before = service.census();
    // Its guest has to wait, so that the abort comes while it is opened.
    service.faults.limit(/^POST .*\/cmd$/, 30);
    const opening = open({ signal: controller.signal });
    opening.catch(() => undefined);
    await expect.poll(() => service.census(), { interval: 5 }).not.toEqual(before);
    controller.abort();
    await expect(opening).rejects.toMatchObject({ code: "aborted" });
    service.faults.clear();
    expect(service.census()).toEqual(before);
  });
});

describe("a service that is busy", () => {
  test("is waited for, where it asks for a moment, when a sandbox is opened", async () => {
    service.faults.limit(/^POST \/v3\/sandboxes$/, 2);
    const requests = await requestsDuring(/^POST \/v3\/sandboxes\?/, async () => {
      expect(await (await open()).readFile("file")).toBeNull();
    });
    expect(requests).toHaveLength(2);
  });
});

describe("a snapshot that the service has no more", () => {
  test("is `not_found`, says so, and the sandbox goes on", async () => {
    const sandbox = await open();
    const id = await sandbox.snapshot();
    await sandbox.writeFile("file", "there");
    for (const snapshot of service.snapshotsOf(sandbox.id)) service.store.removeSnapshot(snapshot);
    const error = await sandbox.restore(id).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: "not_found", message: expect.stringContaining(id) });
    expect((error as { hint?: string }).hint).toMatch(/snapshot has expired, or was deleted/);
    expect(await sandbox.readFile("file")).toBe("there");
    // Of the machine that could not be made nothing is left to remove.
    expect((await readRecord(sandbox.id))?.resources).toHaveLength(1);
    await deleteSnapshot(id);
    expect((await listSnapshots()).map((each) => each.id)).not.toContain(id);
  });

  test("a kept sandbox that lost its files that way cannot be reopened, and says so", async () => {
    const sandbox = await open({ keep: true });
    await sandbox.teardown();
    for (const snapshot of service.snapshotsOf(sandbox.id)) service.store.removeSnapshot(snapshot);
    const reopened = open({ id: sandbox.id });
    await expect(reopened).rejects.toMatchObject({ code: "not_found", hint: expect.stringMatching(/snapshot/) });
    await removeSandbox(sandbox.id);
    expect(service.census().filter((name) => name.startsWith(sandbox.id))).toEqual([]);
  });
});

describe("a fork", () => {
  test.each([1, 2, 3])("of which %i machines are refused leaves nothing but the sandbox", async (refused) => {
    const [before, known] = [service.census(), await listSandboxes()];
    const sandbox = await open();
    service.faults.add(/^POST \/v3\/sandboxes$/, { status: 402, message: "Payment required" }, refused);
    await expect(sandbox.fork({ count: 2 })).rejects.toMatchObject({
      code: expect.stringMatching(/limit_exceeded|backend_lost/),
    });
    const there = (await listSandboxes()).map(({ id }) => id);
    expect(there.sort()).toEqual([...known.map(({ id }) => id), sandbox.id].sort());
    await sandbox.teardown();
    expect(service.census()).toEqual(before);
  });
});

describe("files that go in together", () => {
  const files = Array.from({ length: 50 }, (_, n) => ({ path: `in/${n}/file`, content: `${n}`, mode: 0o640 }));

  test("fifty of them take one request", async () => {
    const sandbox = await open();
    await sandbox.exec({ argv: ["true"] });
    const requests = await requestsDuring(/fs\/write/, () => sandbox.uploadFiles(files));
    expect(requests).toHaveLength(1);
    const { stdout } = await sandbox.shell("cat in/*/file | wc -c; stat -c %a in/7/file; cat in/49/file");
    expect(stdout).toBe("90\n640\n49");
  });

  test("large ones and the same one twice are there as the last one says", async () => {
    const sandbox = await open();
    const large = "x".repeat(2_500_000);
    await sandbox.uploadFiles([
      { path: "a", content: "first" },
      { path: "a", content: large },
      { path: "b", content: large },
      { path: "b", content: "last" },
    ]);
    expect([(await sandbox.readFile("a"))?.length, await sandbox.readFile("b")]).toEqual([large.length, "last"]);
  });

  test("one that cannot be written is reported by its name", async () => {
    const sandbox = await open();
    await sandbox.makeDirectory("taken");
    const uploads = [{ path: "fine", content: "x" }, { path: "taken", content: "x" }, ...files];
    const upload = sandbox.uploadFiles(uploads);
    await expect(upload).rejects.toMatchObject({ code: "not_regular_file", message: expect.stringMatching(/taken/) });
    expect(await sandbox.readFile("fine")).toBe("x");
  });
});

describe("time", () => {
  test("a deadline and a kill from inside are told apart", async () => {
    const sandbox = await open();
    const [late, killed] = await Promise.all([
      sandbox.exec({ argv: ["sleep", "60"], timeout: 1_000 }),
      sandbox.exec({ argv: ["sh", "-c", "kill -9 $$"], timeout: 30_000 }),
    ]);
    expect([late.exitCode, late.timedOut]).toEqual([137, true]);
    expect([killed.exitCode, killed.timedOut, killed.signal]).toEqual([137, false, "SIGKILL"]);
  });
});
