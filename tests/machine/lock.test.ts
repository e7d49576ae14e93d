import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { sweepStaleLocks, withLock } from "../../src/machine/lock.js";
import { createContender } from "../../src/machine/lock-file.js";
import { currentOwner, ownerTag } from "../../src/machine/owner.js";
import { compileSources, startChild } from "../support/run/compiled.js";
import { createScratch, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
let compiled: ReturnType<typeof compileSources>;
beforeAll(() => {
  compiled = compileSources();
});
afterAll(() => compiled.remove());
beforeEach(() => {
  scratch = createScratch();
});
afterEach(() => scratch.remove());

const lockFiles = (): string[] => readdirSync(join(scratch.home, "locks"));
const dead = { ...currentOwner(), startTime: "1" };

test("one at a time in one process, in the order of the calls, and the result comes back", async () => {
  const seen: string[] = [];
  const results = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      withLock("name", async () => {
        seen.push(`in ${n}`);
        await new Promise((resolve) => setImmediate(resolve));
        seen.push(`out ${n}`);
        return n;
      }),
    ),
  );
  expect(seen).toEqual(results.flatMap((n) => [`in ${n}`, `out ${n}`]));
  expect(results).toEqual(Array.from({ length: 20 }, (_, n) => n));
  expect(lockFiles()).toEqual([]);
});

test("different names do not wait for each other", async () => {
  await withLock("one", () => withLock("../../two", async () => expect(lockFiles()).toHaveLength(2)));
});

test("a failure passes through and frees the lock", async () => {
  const failure = new Error("mine");
  await expect(withLock("name", () => Promise.reject(failure))).rejects.toBe(failure);
  await expect(withLock("name", async () => "next")).resolves.toBe("next");
});

test("three processes count to 300 without losing one", async () => {
  const counter = join(scratch.path, "counter");
  writeFileSync(counter, "0");
  const children = [1, 2, 3].map(() =>
    startChild(compiled.directory, "hold-lock.mjs", ["count", "name", counter, "100"]),
  );
  const ends = await Promise.all(children.map((child) => child.ended));
  expect(ends.map((end) => end.code)).toEqual([0, 0, 0]);
  expect(readFileSync(counter, "utf8")).toBe("300");
  expect(lockFiles()).toEqual([]);
});

test("a holder that is killed loses the lock, one that lives keeps it and is named", async () => {
  const child = startChild(compiled.directory, "hold-lock.mjs", ["hold", "name"]);
  expect(await child.line()).toBe("held");
  await expect(withLock("name", async () => "got it", { timeout: 300 })).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining(`process ${child.pid} `),
  });
  child.kill();
  await child.ended;
  await expect(withLock("name", async () => "got it")).resolves.toBe("got it");
});

test("many that meet a dead holder's lock still enter one at a time", async () => {
  const counter = join(scratch.path, "counter");
  for (let round = 0; round < 3; round++) {
    const holder = startChild(compiled.directory, "hold-lock.mjs", ["hold", "name"]);
    await holder.line();
    writeFileSync(counter, "0");
    const waiters = [1, 2, 3].map(() =>
      startChild(compiled.directory, "hold-lock.mjs", ["count", "name", counter, "20"]),
    );
    holder.kill();
    const ends = await Promise.all(waiters.map((waiter) => waiter.ended));
    expect(ends.map((end) => end.code)).toEqual([0, 0, 0]);
    expect(readFileSync(counter, "utf8")).toBe("60");
  }
});

test("waiting in line and waiting for the file both end with the signal and with the timeout", async () => {
  let begin = (): void => undefined;
  let free = (): void => undefined;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const holding = withLock("name", () => {
    begin();
    return new Promise<void>((resolve) => {
      free = resolve;
    });
  });
  await begun;
  const entered = withLock("name", async () => "entered", { timeout: 50 });
  await expect(entered).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining(`${process.pid}`),
  });
  const signal = AbortSignal.timeout(20);
  await expect(withLock("name", async () => "entered", { signal })).rejects.toMatchObject({ code: "aborted" });
  free();
  await holding;
  const child = startChild(compiled.directory, "hold-lock.mjs", ["hold", "name"]);
  try {
    await child.line();
    const late = AbortSignal.timeout(20);
    await expect(withLock("name", async () => "entered", { signal: late })).rejects.toMatchObject({ code: "aborted" });
  } finally {
    child.kill();
    await child.ended;
  }
});

/** The state in which a breaker died after it had got the right to break, and so on `depth` times. */
function leaveChain(base: string, depth: number): void {
  mkdirSync(join(scratch.home, "locks"), { recursive: true, mode: 0o700 });
  const token = (n: number): string => n.toString(16).padStart(24, "0");
  writeFileSync(`${base}.lock`, JSON.stringify({ token: token(0), owner: dead }));
  for (let n = 1; n <= depth; n++) {
    writeFileSync(`${base}.${token(n - 1)}.break`, JSON.stringify({ token: token(n), owner: dead }));
  }
}

test("breakers that died themselves are no obstacle, and exactly one contender gets in", async () => {
  const base = join(scratch.home, "locks", "x");
  leaveChain(base, 3);
  const contenders = Array.from({ length: 10 }, () => createContender(base));
  const outcomes = await Promise.all(contenders.map((contender) => contender.tryOnce()));
  expect(outcomes.filter((holder) => holder === undefined)).toHaveLength(1);
  const losers = contenders.filter((_, n) => outcomes[n] !== undefined);
  const again = await Promise.all(losers.map((contender) => contender.tryOnce()));
  expect(again).not.toContain(undefined);
  for (const contender of contenders) contender.leave();
  expect(lockFiles()).toEqual([]);
});

test("a contender that saw the dead lock does not break the one that came after it", async () => {
  const base = join(scratch.home, "locks", "x");
  leaveChain(base, 0);
  const rival = "f".repeat(24);
  writeFileSync(`${base}.${"0".repeat(24)}.break`, JSON.stringify({ token: rival, owner: currentOwner() }));
  const contender = createContender(base);
  expect(await contender.tryOnce()).toMatchObject({ token: rival });
  expect(lockFiles()).toContain("x.lock");
});

test("one that was slow to break a dead lock leaves alone what somebody quicker has put in its place", async () => {
  const base = join(scratch.home, "locks", "x");
  leaveChain(base, 0);
  // What the dead process started is waited for: that is when the other one is quicker.
  const orphan = spawn("sleep", ["60"], { env: { GLOVEBOX_OWNER: ownerTag(dead) } });
  const ended = new Promise((resolve) => orphan.once("close", resolve));
  const contender = createContender(base);
  const attempt = contender.tryOnce();
  await new Promise((resolve) => setTimeout(resolve, 100));
  const quicker = "f".repeat(24);
  writeFileSync(`${base}.lock`, JSON.stringify({ token: quicker, owner: currentOwner() }));
  orphan.kill("SIGKILL");
  await ended;
  expect(await attempt).toMatchObject({ token: quicker });
  contender.leave();
  expect(lockFiles()).toEqual(["x.lock"]);
});

test("an unreadable lock, as a power loss leaves it, does not stay for ever", async () => {
  await withLock("name", async () => undefined);
  const base = join(scratch.home, "locks", "x");
  writeFileSync(`${base}.lock`, "");
  const contender = createContender(base);
  expect(await contender.tryOnce()).toBeUndefined();
});

test("sweeping removes what the dead left and nothing else", async () => {
  const base = join(scratch.home, "locks", "x");
  leaveChain(base, 2);
  const [place, pid] = ownerTag().split("-");
  writeFileSync(`${base}.${place}-${pid}-0000.abc.tmp`, "");
  writeFileSync(`${base}.abc.tmp`, JSON.stringify({ token: "a".repeat(24), owner: dead }));
  writeFileSync(
    join(scratch.home, "locks", `y.${"0".repeat(24)}.break`),
    JSON.stringify({ token: "b".repeat(24), owner: dead }),
  );
  await withLock("held", async () => {
    await sweepStaleLocks();
    expect(lockFiles()).toHaveLength(1);
  });
  expect(lockFiles()).toEqual([]);
});
