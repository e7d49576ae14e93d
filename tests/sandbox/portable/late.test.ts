import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { SandboxError } from "../../../contracts/errors.js";
import type { SandboxEvent } from "../../../contracts/types.js";
import { openInTime } from "../../../src/sandbox/lifecycle/open-in-time.js";
import { createSandbox } from "../../../src/sandbox/portable.js";
import type { DriverProcess, Sandbox, StartSpec } from "../../../src/sandbox/types.js";
import { openPlainDriver, PlainDriver } from "../../fixtures/plain-driver.js";

/** How late a call may be. */
const GRACE = 2_000;
const open: PlainDriver[] = [];
afterEach(async () => {
  for (const driver of open.splice(0)) await driver.close();
});

async function driverOf<T extends PlainDriver>(kind: new (workDir: string) => T): Promise<T> {
  const { workDir } = await openPlainDriver();
  const driver = new kind(workDir);
  open.push(driver);
  return driver;
}

async function timed<T>(call: Promise<T>): Promise<{ ms: number; value?: T; error?: unknown }> {
  const began = performance.now();
  try {
    const value = await call;
    return { ms: performance.now() - began, value };
  } catch (error) {
    return { ms: performance.now() - began, error };
  }
}

/** Has other work to do first, as one whose files are being saved. */
class Busy extends PlainDriver {
  override async start(spec: StartSpec): Promise<DriverProcess> {
    await new Promise<void>((resolve) => spec.signal?.addEventListener("abort", () => resolve()));
    throw new SandboxError("aborted", "it had not begun");
  }
}

/** Starts what nobody can end, and hears of no end. */
class Deaf extends PlainDriver {
  override async start(): Promise<DriverProcess> {
    const silent = async function* (): AsyncGenerator<Uint8Array> {
      await new Promise(() => undefined);
      yield new Uint8Array();
    };
    return {
      stdout: silent(),
      stderr: silent(),
      writeStdin: async () => undefined,
      closeStdin: async () => undefined,
      kill: async () => undefined,
      wait: () => new Promise(() => undefined),
    };
  }
}

/** Takes longer to fork than anybody waits. */
class SlowFork extends PlainDriver {
  readonly made: PlainDriver[] = [];
  readonly isMade: Promise<void>;
  #done = (): void => undefined;

  constructor(workDir: string) {
    super(workDir, { fork: "copy" });
    this.isMade = new Promise((resolve) => {
      this.#done = resolve;
    });
  }

  async fork(count: number): Promise<PlainDriver[]> {
    await delay(400);
    for (let n = 0; n < count; n++) this.made.push(await openPlainDriver());
    this.#done();
    return this.made;
  }
}

describe("a command that its driver has not begun when the deadline is there", () => {
  test("is timed out, with nothing printed", async () => {
    const box = createSandbox(await driverOf(Busy));
    const { ms, value } = await timed(box.exec({ argv: ["true"], timeout: 200 }));
    expect(value).toMatchObject({ timedOut: true, exitCode: 137, stdout: "", stderr: "" });
    expect(ms).toBeLessThan(200 + GRACE / 2);
  });

  test("is aborted, when that is why", async () => {
    const box = createSandbox(await driverOf(Busy));
    const { ms, error } = await timed(box.exec({ argv: ["true"], signal: AbortSignal.timeout(200) }));
    expect(error).toMatchObject({ code: "aborted" });
    expect(ms).toBeLessThan(200 + GRACE / 2);
  });
});

describe("a driver that never confirms an end", () => {
  test("is lost, and the call returns in time", async () => {
    const box = createSandbox(await driverOf(Deaf));
    const { ms, error } = await timed(box.exec({ argv: ["true"], timeout: 300 }));
    expect(error).toMatchObject({ code: "backend_lost" });
    expect(ms).toBeLessThan(300 + GRACE);
  });

  test("does not make the teardown later than its deadline", async () => {
    const events: SandboxEvent[] = [];
    const box = createSandbox(await driverOf(Deaf), { operationTimeout: 500, onEvent: (event) => events.push(event) });
    const call = box.exec({ argv: ["true"], timeout: 60_000 }).catch(() => undefined);
    await delay(50);
    const { ms } = await timed(box.teardown());
    expect(ms).toBeLessThan(500 + GRACE / 2);
    expect(events.at(-1)).toMatchObject({ type: "leak" });
    await call;
    // What was too late is done by the next call.
    await box.teardown();
    expect(events.at(-1)).toMatchObject({ type: "teardown" });
  });
});

test("forks that are made too late for their call are taken down", async () => {
  const driver = await driverOf(SlowFork);
  const box = createSandbox(driver, { operationTimeout: 200 });
  const { error } = await timed(box.fork({ count: 2 }));
  expect(error).toMatchObject({ code: "unavailable" });
  await driver.isMade;
  await expect.poll(() => driver.made.map(({ destroyed }) => destroyed)).toEqual([1, 1]);
});

describe("an opening", () => {
  test("that is not done in time is unavailable, its signal is aborted, and what comes of it later is taken down", async () => {
    const driver = await driverOf(PlainDriver);
    let told: AbortSignal | undefined;
    let finish = (): void => undefined;
    const late = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const opening = openInTime("plain", { operationTimeout: 200 }, async ({ signal }): Promise<Sandbox> => {
      told = signal;
      await late;
      return createSandbox(driver);
    });
    const { ms, error } = await timed(opening);
    expect(error).toMatchObject({ code: "unavailable", operation: "open", backend: "plain" });
    expect(ms).toBeLessThan(200 + GRACE);
    expect(told?.aborted).toBe(true);
    finish();
    await expect.poll(() => driver.destroyed).toBe(1);
  });

  test("that undoes itself when it is told returns then, with the reason that was there first", async () => {
    const open = async ({ signal }: { signal?: AbortSignal }): Promise<Sandbox> => {
      await new Promise<void>((resolve) => signal?.addEventListener("abort", () => resolve()));
      throw new Error("undone");
    };
    const late = await timed(openInTime("plain", { operationTimeout: 200 }, open));
    expect(late.error).toMatchObject({ code: "unavailable" });
    const aborted = await timed(openInTime("plain", { signal: AbortSignal.timeout(200) }, open));
    expect(aborted.error).toMatchObject({ code: "aborted" });
    for (const { ms } of [late, aborted]) expect(ms).toBeLessThan(200 + GRACE / 2);
  });
});
