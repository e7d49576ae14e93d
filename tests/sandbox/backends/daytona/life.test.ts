import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { keepAlive } from "../../../../src/sandbox/backends/daytona/keep-alive.js";
import { listSandboxes, reap, removeSandbox } from "../../../../src/sandbox.js";
import { createHabits } from "../../../fakes/daytona/habits.js";
import { type DaytonaService, setEnv, startDaytonaService } from "../../../support/daytona/service.js";

let there: DaytonaService;
beforeAll(async () => {
  there = await startDaytonaService();
});
afterAll(() => there.close());
afterEach(() => {
  Object.assign(there.service.habits, createHabits());
});

/** The call returns at its deadline; what it has not undone by then, it undoes after that. */
async function nothingLeft(): Promise<void> {
  const look = async (): Promise<void> => {
    expect([...there.service.sandboxes.values()].filter(({ state }) => state !== "destroying")).toEqual([]);
    expect(await listSandboxes()).toEqual([]);
  };
  await vi.waitFor(look, { timeout: 30_000, interval: 50 });
}

describe("creation and the end", () => {
  test("a create that runs out of time leaves nothing behind", async () => {
    there.service.habits.createMs = 4_000;
    await expect(there.open({ operationTimeout: 1_000 })).rejects.toMatchObject({ code: "unavailable" });
    await nothingLeft();
    expect(there.service.requests.at(-1)).toMatch(/^(GET|DELETE) /);
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

  test("a long wait that the service asks for is kept to, and one beyond the call's own time is told at once", async () => {
    const busy = (seconds: number): void => {
      const headers = { "Retry-After-sandbox-create": String(seconds) };
      there.service.habits.faults = [{ match: /POST \/api\/sandbox$/, action: { status: 429, headers } }];
    };
    const started = performance.now();
    busy(6);
    await (await there.open()).teardown();
    expect(performance.now() - started).toBeGreaterThan(6_000);
    const again = performance.now();
    busy(300);
    await expect(there.open({ operationTimeout: 20_000 })).rejects.toMatchObject({
      code: "unavailable",
      hint: expect.stringContaining("300 s"),
    });
    expect(performance.now() - again).toBeLessThan(4_000);
    expect(await listSandboxes()).toEqual([]);
  });

  test("a create that runs out of time is deleted as soon as the service lets it be", async () => {
    there.service.habits.createMs = 6_000;
    await expect(there.open({ operationTimeout: 1_000 })).rejects.toMatchObject({ code: "unavailable" });
    await nothingLeft();
  });

  test("a kept sandbox is opened again from every state that it can be on its way to", async () => {
    const kept = await there.open({ keep: true });
    await kept.writeFile("x", "there");
    await kept.teardown();
    const { apiUrl, apiKey, habits } = there.service;
    const { id } = there.service.entry(`glovebox-${kept.id}`);
    const ask = (verb: string): Promise<Response> =>
      fetch(`${apiUrl}/sandbox/${id}/${verb}`, { method: "POST", headers: { Authorization: `Bearer ${apiKey}` } });
    const steps: [string, () => Promise<unknown>][] = [
      ["stopped", async () => undefined],
      ["archived", () => ask("archive")],
      ["starting", () => ask("start")],
    ];
    for (const [state, prepare] of steps) {
      habits.transitMs = 700;
      await prepare();
      expect(there.service.entry(`glovebox-${kept.id}`).state).toBe(state);
      const again = await there.open({ id: kept.id });
      expect(await again.readFile("x")).toBe("there");
      habits.transitMs = 5;
      await again.teardown();
    }
    await ask("start");
    while (there.service.entry(`glovebox-${kept.id}`).state !== "started") await sleep(5);
    habits.transitMs = 700;
    expect((await ask("stop")).status).toBe(200);
    expect(there.service.entry(`glovebox-${kept.id}`).state).toBe("stopping");
    const last = await there.open({ id: kept.id });
    expect(await last.readFile("x")).toBe("there");
    habits.transitMs = 5;
    await last.teardown();
    await removeSandbox(kept.id);
  });

  test("a sandbox that nobody uses stops, and what was kept is there when it is opened again", async () => {
    const kept = await there.open({ keep: true, daytona: { autoStopMinutes: 1 } });
    await kept.writeFile("x", "there");
    const entry = there.service.entry(`glovebox-${kept.id}`);
    // A session is open: the sandbox is in use, however short a minute is.
    there.service.habits.minuteMs = 50;
    await sleep(300);
    expect(entry.state).toBe("started");
    await kept.teardown();
    there.service.habits.minuteMs = 60_000;
    const again = await there.open({ id: kept.id });
    expect(await again.readFile("x")).toBe("there");
    await again.teardown();
    await removeSandbox(kept.id);
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

  test("a kept sandbox that is opened again allows no more than before", async () => {
    const kept = await there.open({ keep: true, allow: ["echo"], maxOutput: 64, network: "none" });
    await kept.teardown();
    const again = await there.open({ id: kept.id });
    await expect(again.exec({ argv: ["id"] })).rejects.toMatchObject({ code: "command_not_allowed" });
    expect((await again.exec({ argv: ["echo", "x".repeat(500)] })).truncated.stdout).toBe(true);
    await again.teardown();
    await expect(there.open({ id: kept.id, network: "full" })).rejects.toMatchObject({ code: "invalid_argument" });
    await removeSandbox(kept.id);
  });

  test("a kept sandbox that somebody has deleted is not found, and is removed without a word", async () => {
    const { apiUrl, apiKey } = there.service;
    const kept = await there.open({ keep: true });
    await kept.teardown();
    const { id } = there.service.entry(`glovebox-${kept.id}`);
    await fetch(`${apiUrl}/sandbox/${id}`, { method: "DELETE", headers: { Authorization: `Bearer ${apiKey}` } });
    for (let i = 0; i < 400 && there.service.sandboxes.size > 0; i++) await sleep(5);
    await expect(there.open({ id: kept.id })).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringContaining("could not be opened again"),
    });
    await removeSandbox(kept.id);
    expect(await listSandboxes()).toEqual([]);
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

  test("an open sandbox says that it is in use three times in the time that it may be idle", async () => {
    const plain = globalThis.setInterval;
    const beats: (() => void)[] = [];
    globalThis.setInterval = ((work: () => void, ms?: number) => {
      if (ms === 20_000) beats.push(work);
      return plain(work, ms);
    }) as typeof setInterval;
    try {
      await using sandbox = await there.open({ daytona: { autoStopMinutes: 1 } });
      const entry = there.service.entry(`glovebox-${sandbox.id}`);
      expect([entry.autoStopInterval, beats.length, entry.activity]).toEqual([1, 1, 0]);
      beats[0]?.();
      for (let i = 0; i < 400 && entry.activity === 0; i++) await sleep(5);
      expect(entry.activity).toBe(1);
    } finally {
      globalThis.setInterval = plain;
    }
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
