import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import type { Sandbox } from "../../src/sandbox/types.js";
import { deleteSnapshot, listSnapshots } from "../../src/sandbox.js";
import { type Hogs, startHogs } from "./hogs.js";
import { createLoadPlace, type LoadPlace } from "./place.js";

/** How late a call may be, in milliseconds. */
export const GRACE = 2_000;

/** What became of a call, and how long it took. */
export interface Timed<T> {
  readonly value?: T;
  readonly error?: { code?: string; message?: string };
  readonly ms: number;
}

/** What the tests of one file share. */
export interface LoadSuite {
  readonly place: LoadPlace;
  /** A sandbox that is taken down after the test. */
  use<T extends Sandbox | undefined>(sandbox: T): T;
  /** Does something while nothing else is busy, and lets the load go on. */
  quietly<T>(work: () => Promise<T>): Promise<T>;
}

/** Loads the machine while each test of a file runs. After it nothing may be left. */
export function useLoad(prepare: (suite: LoadSuite) => Promise<void>, timeout?: number): LoadSuite {
  let hogs: Hogs;
  let place: LoadPlace;
  let opened: Sandbox[] = [];
  const suite: LoadSuite = {
    get place() {
      return place;
    },
    use(sandbox) {
      if (sandbox !== undefined) opened.push(sandbox);
      return sandbox;
    },
    async quietly(work) {
      hogs.rest();
      try {
        return await work();
      } finally {
        hogs.work();
      }
    },
  };
  beforeAll(async () => {
    hogs = await startHogs();
    place = createLoadPlace();
    // What the first one makes for all is not what is measured.
    await prepare(suite);
    place.begin();
  }, timeout);
  afterAll(() => {
    hogs?.[Symbol.dispose]();
    place?.remove();
  });
  beforeEach(() => hogs.work());
  afterEach(async () => {
    hogs.rest();
    for (const sandbox of opened) await sandbox.teardown();
    for (const { id } of await listSnapshots()) await deleteSnapshot(id);
    const left = await place.left(opened.map(({ id }) => id));
    opened = [];
    expect(left, "what is left").toEqual({});
  });
  return suite;
}

/** Runs a call to its end, whatever that is. */
export async function timed<T>(work: () => Promise<T>): Promise<Timed<T>> {
  const began = performance.now();
  try {
    const value = await work();
    return { value, ms: performance.now() - began };
  } catch (error) {
    return { error: error as { code?: string; message?: string }, ms: performance.now() - began };
  }
}

/** It returned in time: with what was asked for, or with one of these codes. */
export function expectInTime(
  deadline: number,
  { ms, error }: Timed<unknown>,
  codes: readonly string[] = ["unavailable"],
): void {
  if (process.env["GLOVEBOX_LOAD_TIMES"]) {
    console.log(`${expect.getState().currentTestName}: ${Math.round(ms)} of ${deadline} ms, ${error?.code ?? "done"}`);
  }
  expect(ms, `took ${Math.round(ms)} ms: ${error?.message ?? "done"}`).toBeLessThan(deadline + GRACE);
  if (error !== undefined) expect(codes, error.message).toContain(error.code);
}
