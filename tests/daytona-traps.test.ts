import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { keepAlive } from "../src/sandbox/daytona/keep-alive.js";
import type { Sandbox } from "../src/sandbox/types.js";
import { listSandboxes, reap } from "../src/sandbox.js";
import { createHabits } from "./fakes/daytona/habits.js";
import { type DaytonaService, setEnv, startDaytonaService } from "./support/daytona-service.js";

let there: DaytonaService;
beforeAll(async () => {
  there = await startDaytonaService();
});
afterAll(() => there.close());
afterEach(() => {
  Object.assign(there.service.habits, createHabits());
});

const input = /POST .*\/input/;

/** Counts how often a command has run, by what it leaves behind. */
async function runsOf(sandbox: Sandbox): Promise<number> {
  return (await sandbox.readFile("runs"))?.length ?? 0;
}

describe("a command runs once, and its result is whole, when", () => {
  test.each([
    ["the request was lost before it was taken", [{ match: input, action: "reset" }]],
    ["the answer was lost after it was taken", [{ match: input, action: "reset-after" }]],
    ["a gateway says 502", [{ match: input, action: { status: 502 } }]],
    [
      "the service is too busy",
      [{ match: input, action: { status: 429, headers: { "Retry-After-authenticated": "0" } } }],
    ],
    [
      "all of it",
      [
        { match: input, action: "reset" },
        { match: input, action: { status: 503 } },
        { match: input, action: "reset-after" },
      ],
    ],
  ] as const)("%s", async (_what, faults) => {
    await using sandbox = await there.open();
    there.service.habits.faults = faults.map((fault) => ({ ...fault }));
    const result = await sandbox.shell("printf x >> runs; echo out; echo err >&2; exit 7");
    expect(result).toMatchObject({ exitCode: 7, stdout: "out\n", stderr: "err\n" });
    expect(there.service.habits.faults).toEqual([]);
    expect(await runsOf(sandbox)).toBe(1);
  });

  test.each([
    ["politely", false],
    ["rudely", true],
  ])("the socket of the log closes early, %s, again and again", async (_how, followCutRudely) => {
    await using sandbox = await there.open();
    Object.assign(there.service.habits, { followCutAfter: 30_000, followCutRudely });
    there.service.entry(`glovebox-${sandbox.id}`).processes.cutFollowers();
    const result = await sandbox.shell("printf x >> runs; seq 20000; sleep 0.3; seq 20000 >&2", { raw: true });
    expect([result.exitCode, result.bytes.stdout, result.bytes.stderr]).toEqual([0, 108_894, 108_894]);
    expect(await runsOf(sandbox)).toBe(1);
  });

  test.each([3, 4])("frames of %i bytes make the SDK take marks for text", async (frameBytes) => {
    await using sandbox = await there.open();
    there.service.habits.frameBytes = frameBytes;
    expect(await sandbox.shell("seq 300; exit 4")).toMatchObject({ exitCode: 4, bytes: { stdout: 1_092 } });
  });

  test("nobody can follow a log at all", async () => {
    there.service.habits.refuseFollow = true;
    await using sandbox = await there.open();
    expect(await sandbox.shell("echo polled; exit 2")).toMatchObject({ exitCode: 2, stdout: "polled\n" });
  });

  test("input is echoed into the log", async () => {
    there.service.habits.echoInput = true;
    await using sandbox = await there.open();
    expect((await sandbox.exec({ argv: ["cat"], stdin: "through\n" })).stdout).toBe("through\n");
  });

  test("it says nothing for long, and the log's reader lingers", async () => {
    there.service.habits.lingerMs = 1_000;
    await using sandbox = await there.open();
    const result = await sandbox.shell("sleep 2.5; echo late");
    expect(result).toMatchObject({ exitCode: 0, stdout: "late\n" });
    expect(result.durationMs).toBeLessThan(20_000);
  });
});

describe("what is lost is said to be lost, never an exit code", () => {
  test("a sandbox that was stopped under a command", async () => {
    const sandbox = await there.open({ keep: true });
    const call = sandbox.shell("echo up; sleep 60");
    await sleep(300);
    const entry = there.service.entry(`glovebox-${sandbox.id}`);
    const { apiUrl, apiKey } = there.service;
    await fetch(`${apiUrl}/sandbox/${entry.id}/stop`, {
      method: "POST",
      headers: { Authorization: `Bearer ${apiKey}` },
    });
    await expect(call).rejects.toMatchObject({ code: "backend_lost", message: expect.stringContaining("stopped") });
    await expect(sandbox.writeFile("x", "y")).rejects.toMatchObject({ code: "backend_lost" });
    await sandbox.teardown();
    await reopenAndRemove(sandbox.id);
  });

  test("a sandbox that was deleted under a command", async () => {
    const sandbox = await there.open();
    const call = sandbox.shell("echo up; sleep 60");
    await sleep(300);
    const entry = there.service.entry(`glovebox-${sandbox.id}`);
    const { apiUrl, apiKey } = there.service;
    await fetch(`${apiUrl}/sandbox/${entry.id}`, { method: "DELETE", headers: { Authorization: `Bearer ${apiKey}` } });
    await expect(call).rejects.toMatchObject({ code: "backend_lost" });
    await expect(sandbox.exec({ argv: ["true"] })).rejects.toMatchObject({ code: "backend_lost" });
    await sandbox.teardown();
    expect(await listSandboxes()).toEqual([]);
  });

  test("an agent that was killed", async () => {
    await using sandbox = await there.open();
    const call = sandbox.shell("kill -9 -1");
    await expect(call).rejects.toMatchObject({ code: "backend_lost" });
  });

  test("an upload that the service refuses, and one that never arrives", async () => {
    await using sandbox = await there.open();
    there.service.habits.faults = [
      { match: /bulk-upload/, action: { status: 403, body: { message: "denied", statusCode: 403 } } },
    ];
    await expect(sandbox.writeFile("x", "y")).rejects.toMatchObject({ code: "permission_denied" });
    there.service.habits.faults = [{ match: /bulk-upload/, action: { status: 200, body: { files: [] } } }];
    await expect(sandbox.writeFile("x", "y")).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("did not arrive"),
    });
    expect(await sandbox.readFile("x")).toBeNull();
  });
});

describe("creation and the end", () => {
  test("a create that runs out of time leaves nothing behind", async () => {
    there.service.habits.createMs = 4_000;
    await expect(there.open({ operationTimeout: 1_000 })).rejects.toMatchObject({ code: "unavailable" });
    expect(there.service.requests.at(-1)).toMatch(/^(GET|DELETE) /);
    expect([...there.service.sandboxes.values()].filter(({ state }) => state !== "destroying")).toEqual([]);
    expect(await listSandboxes()).toEqual([]);
  });

  test("a create whose answer is lost leaves nothing behind", async () => {
    there.service.habits.faults = [{ match: /POST \/api\/sandbox$/, action: "reset-after" }];
    await expect(there.open()).rejects.toMatchObject({ code: "unavailable" });
    expect([...there.service.sandboxes.values()].filter(({ state }) => state !== "destroying")).toEqual([]);
  });

  test("too many creations wait as long as the service asks", async () => {
    const headers = { "Retry-After-sandbox-create": "0" };
    there.service.habits.faults = [{ match: /POST \/api\/sandbox$/, action: { status: 429, headers }, times: 2 }];
    await using sandbox = await there.open();
    expect((await sandbox.exec({ argv: ["echo", "made"] })).stdout).toBe("made\n");
  });

  test("a wrong key is unauthenticated, an unknown snapshot a wrong argument", async () => {
    await expect(there.open({ daytona: { apiKey: "dtn_wrong_wrong_wrong" } })).rejects.toMatchObject({
      code: "unauthenticated",
      message: expect.not.stringContaining("dtn_wrong"),
    });
    await reap();
    const unknown = { code: "invalid_argument", message: expect.stringContaining("no-such not found") };
    await expect(there.open({ daytona: { snapshot: "no-such" } })).rejects.toMatchObject(unknown);
  });

  test("what could not be deleted stays in the ledger, and reap tries again", async () => {
    const sandbox = await there.open();
    there.service.habits.faults = [{ match: /DELETE \/api/, action: { status: 403, body: { message: "not now" } } }];
    await sandbox.teardown();
    expect((await listSandboxes()).map(({ id }) => id)).toEqual([sandbox.id]);
    const restore = setEnv({ DAYTONA_API_KEY: there.service.apiKey, DAYTONA_API_URL: there.service.apiUrl });
    try {
      expect((await reap()).removed).toEqual([sandbox.id]);
    } finally {
      restore();
    }
    expect(there.service.sandboxes.size).toBe(0);
  });

  test("deleting waits through a transition that is under way", async () => {
    const sandbox = await there.open();
    const action = { status: 409, body: { message: "Sandbox state change in progress", statusCode: 409 } };
    there.service.habits.faults = [{ match: /DELETE \/api/, action, times: 2 }];
    await sandbox.teardown();
    expect([there.service.habits.faults, await listSandboxes()]).toEqual([[], []]);
  });

  test("the service is told that the sandbox is in use, and a failure of that is only a warning", async () => {
    let told = 0;
    const warnings: string[] = [];
    const refresh = async (): Promise<void> => {
      told += 1;
      if (told === 2) throw new Error("not heard");
    };
    const end = keepAlive(refresh, 5, (message) => warnings.push(message));
    for (let i = 0; i < 400 && told < 4; i++) await sleep(5);
    end();
    expect(told).toBeGreaterThanOrEqual(4);
    expect(warnings).toEqual([expect.stringContaining("not heard")]);
  });
});

async function reopenAndRemove(id: string): Promise<void> {
  const again = await there.open({ id, keep: false });
  await again.teardown();
}
