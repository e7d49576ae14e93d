import { describe, expect, test } from "vitest";
import { SandboxError } from "../../contracts/errors.js";
import { isRefusal, kindOf, stopsAll } from "../../src/batch/failure-kind.js";
import { hasRoom, usualConcurrency } from "../../src/batch/machine-room.js";
import { Tally } from "../../src/batch/progress.js";
import { applyRecord, emptyState } from "../../src/batch/task-states.js";
import { Window } from "../../src/batch/window.js";

describe("the window", () => {
  test("grows by one with each sandbox that opens, up to its most", () => {
    const window = new Window(100);
    expect(window.size).toBe(32);
    for (let n = 0; n < 200; n++) window.opened();
    expect(window.size).toBe(100);
    expect(new Window(8).size).toBe(8);
  });

  test("is halved once for all refusals of a moment, and then grows slowly", () => {
    const window = new Window(100);
    for (let n = 0; n < 68; n++) window.opened();
    for (let n = 0; n < 40; n++) window.refused(1000 + n);
    expect(window.size).toBe(50);
    for (let n = 0; n < 50; n++) window.opened();
    expect(window.size).toBe(50);
    window.opened();
    expect(window.size).toBe(51);
  });

  test("counts refusals of what was asked for before the last one as part of its round", () => {
    const window = new Window(100);
    window.refused(1000, 900);
    window.refused(9000, 990);
    expect([window.size, window.pause(9000)]).toEqual([16, 0]);
    window.refused(9001, 1001);
    expect(window.size).toBe(8);
  });

  test("makes everybody wait longer with each round, and stops waiting when one opens", () => {
    const window = new Window(100);
    window.opened();
    const pauses: number[] = [];
    let now = 0;
    for (let round = 0; round < 10; round++) {
      window.refused(now);
      pauses.push(window.pause(now));
      now += window.pause(now) + 1;
    }
    expect(window.size).toBe(1);
    expect(pauses[0]).toBeLessThanOrEqual(250);
    for (const [at, pause] of pauses.slice(1).entries()) expect(pause).toBeGreaterThanOrEqual((pauses[at] ?? 0) / 2);
    expect(pauses.at(-1)).toBeGreaterThanOrEqual(15_000);
    expect(pauses.at(-1)).toBeLessThanOrEqual(30_000);
    window.opened();
    window.refused(now);
    expect(window.pause(now)).toBeLessThanOrEqual(250);
  });

  test("is not hopeless because nobody asked for a long time", () => {
    const window = new Window(10);
    window.opened();
    window.refused(1000);
    // Everything that is open takes an hour, and then one more is refused.
    window.refused(3_601_000, 3_600_900);
    expect(window.isHopeless(600_000, 3_601_000)).toBe(false);
    // Each of these was waited for until its deadline.
    for (const now of [3_900_000, 4_210_000]) window.refused(now, now - 290_000);
    expect(window.isHopeless(600_000, 4_210_000)).toBe(true);
  });

  test("makes nobody wait longer than it is hopeless after, if nothing was ever opened", () => {
    const window = new Window(100);
    let now = 0;
    while (!window.isHopeless(600_000, now)) {
      window.refused(now);
      expect(window.pause(now)).toBeLessThanOrEqual(4_000);
      now += window.pause(now) + 1;
    }
  });

  test("is hopeless sooner if nothing was ever opened", () => {
    const window = new Window(10);
    window.refused(0);
    expect([window.isHopeless(600_000, 19_000), window.isHopeless(600_000, 21_000)]).toEqual([false, true]);
    window.opened();
    expect(window.isHopeless(600_000, 21_000)).toBe(false);
    window.refused(30_000);
    expect([window.isHopeless(600_000, 600_000), window.isHopeless(600_000, 631_000)]).toEqual([false, true]);
  });
});

describe("a failure", () => {
  test.each([
    ["unavailable", undefined, "infra"],
    ["backend_lost", undefined, "infra"],
    ["internal", undefined, "infra"],
    ["unavailable", false, "task"],
    ["not_found", undefined, "task"],
    ["invalid_argument", undefined, "task"],
    ["limit_exceeded", undefined, "task"],
    ["command_not_allowed", undefined, "task"],
  ] as const)("with the code %s (retryable: %s) is of kind %s", (code, retryable, kind) => {
    expect(kindOf(new SandboxError(code, "429 quota connection lost", { retryable }))).toBe(kind);
  });

  test("is a refusal, or stops everything, by its code and its place alone", () => {
    const busy = new SandboxError("unavailable", "x");
    const full = new SandboxError("no_space", "x");
    expect([isRefusal(busy, true), isRefusal(busy, false)]).toEqual([true, false]);
    expect([stopsAll(full, true), stopsAll(full, false)]).toEqual([true, false]);
    const lacking = new SandboxError("missing_dependency", "x");
    expect([stopsAll(lacking, true), stopsAll(lacking, false), kindOf(lacking)]).toEqual([true, false, "infra"]);
    expect(stopsAll(new SandboxError("unauthenticated", "x"), false)).toBe(true);
  });
});

test("what one costs is known from earlier runs, too", () => {
  const state = emptyState();
  for (const record of [
    { t: "planned", task: "a", digest: "" },
    { t: "failed", task: "a", attempt: 1, kind: "infra", code: "backend_lost", message: "", final: false, cost: 1 },
    { t: "finished", task: "a", attempt: 2, outcome: "passed", ms: 1, cost: 3, end: 1 },
  ] as const) {
    applyRecord(state, record);
  }
  const tally = new Tally(["a", "b"], state);
  expect([tally.cost, tally.usualCost]).toEqual([4, 2]);
  tally.spend(5);
  expect([tally.cost, tally.usualCost]).toEqual([9, 3]);
  expect(tally.progress(0, 1)).toMatchObject({ total: 2, done: 1, passed: 1, costUsd: 9 });
});

test("as many are open at once as this machine has memory and cores for", () => {
  expect(usualConcurrency(false)).toBe(100);
  expect(usualConcurrency(true, 2 ** 50)).toBe(1);
  expect(usualConcurrency(true, 1)).toBeGreaterThanOrEqual(4);
  expect([hasRoom(1), hasRoom(2 ** 50)]).toEqual([true, false]);
});
