import { afterEach, expect, test } from "vitest";
import { type LifetimeEnd, SandboxLifetime } from "../../../src/sandbox/portable/lifetime.js";

const DAYS_30 = 30 * 24 * 3_600_000;
const open: SandboxLifetime[] = [];
afterEach(() => {
  for (const lifetime of open.splice(0)) lifetime.close();
});

interface Bounds {
  ttl?: number;
  idleTimeout?: number;
  isBusy?: () => boolean;
}

/** A lifetime, and its end with the milliseconds until then. */
function start({ ttl, idleTimeout, isBusy = () => false }: Bounds): {
  lifetime: SandboxLifetime;
  ended: Promise<LifetimeEnd & { after: number }>;
} {
  const begun = performance.now();
  const expiresAt = ttl === undefined ? undefined : new Date(Date.now() + ttl).toISOString();
  let resolve: (ending: LifetimeEnd & { after: number }) => void;
  const ended = new Promise<LifetimeEnd & { after: number }>((done) => {
    resolve = done;
  });
  const end = (ending: LifetimeEnd): void => resolve({ ...ending, after: performance.now() - begun });
  const lifetime = new SandboxLifetime({ id: "one", expiresAt, idleTimeout, isBusy, end });
  open.push(lifetime);
  return { lifetime, ended };
}

/** Its own timers would not keep the process, nor this test, alive. */
async function awake<T>(work: Promise<T>): Promise<T> {
  const timer = setInterval(() => undefined, 1_000);
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}

test("ends at the ttl and not before, and says so", async () => {
  const ending = await awake(start({ ttl: 300 }).ended);
  expect(ending).toMatchObject({ isExpired: true, message: expect.stringContaining("its ttl ended, at 20") as string });
  // The time of expiry has whole milliseconds.
  expect(ending.after).toBeGreaterThanOrEqual(298);
});

test("one that is over already ends at once", async () => {
  expect((await awake(start({ ttl: -5_000 }).ended)).isExpired).toBe(true);
});

test("thirty days are more than a timer can wait, and do not end at once", async () => {
  const { ended } = start({ ttl: DAYS_30, idleTimeout: DAYS_30 });
  const short = start({ ttl: 100 });
  expect(await awake(Promise.race([ended.then(() => "long"), short.ended.then(() => "short")]))).toBe("short");
});

test("is idle from the last use on, and never while something runs", async () => {
  let isBusy = true;
  const { lifetime, ended } = start({ idleTimeout: 300, isBusy: () => isBusy });
  const waits = start({ ttl: 700 });
  expect(await awake(Promise.race([ended.then(() => "closed"), waits.ended.then(() => "busy")]))).toBe("busy");
  isBusy = false;
  lifetime.touch();
  const used = performance.now();
  const { message, isExpired } = await awake(ended);
  expect(performance.now() - used).toBeGreaterThanOrEqual(299);
  expect({ message, isExpired }).toEqual({
    message: "The sandbox one was closed after its idleTimeout: it was not used for 300 ms",
    isExpired: false,
  });
});

test("keeps no process alive", () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  start({ ttl: 60_000, idleTimeout: 60_000 });
  expect(timers()).toBe(before);
});
