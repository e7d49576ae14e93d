import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { failpoint } from "./failpoint.js";
import { privateSubdirectory } from "./home.js";
import { type Contender, createContender, type LockHolder, namesLeftLocked, sweepLocks } from "./lock-file.js";

/** How long `withLock` waits. */
export interface LockOptions {
  /** Milliseconds. Default 60 000. */
  timeout?: number;
  signal?: AbortSignal | undefined;
}

const DEFAULT_TIMEOUT = 60_000;
const LONGEST_PAUSE = 100;
const lines = new Map<string, Promise<void>>();

/**
 * Runs `work` while no other process of this user does so under the same name.
 *
 * Callers of one process wait in line; only the first of them contends for the file. A lock of a dead process is broken; one that stays held is
 * `unavailable`. Don't nest calls under one name. `work` gets the time at which a dead holder had got the lock.
 */
export async function withLock<T>(
  name: string,
  work: (heldBefore: number | undefined) => Promise<T>,
  opts: LockOptions = {},
): Promise<T> {
  return await hold(baseOf(name), name, work, opts);
}

/** Runs `work` while no other process does so that knows this file, whatever its home is. The lock is a file beside it. */
export async function withLockAt<T>(path: string, work: () => Promise<T>, opts: LockOptions = {}): Promise<T> {
  return await hold(path, path, work, opts);
}

async function hold<T>(
  base: string,
  name: string,
  work: (heldBefore: number | undefined) => Promise<T>,
  opts: LockOptions,
): Promise<T> {
  const wait = createWait(name, opts);
  const { ahead, step } = joinLine(base);
  try {
    await wait.until(ahead);
    const lock = await acquire(base, name, wait);
    try {
      await failpoint("lock.held");
      return await work(lock.heldBefore());
    } finally {
      lock.leave();
    }
  } finally {
    step();
  }
}

/** Whether a process holds a lock, or died with it. Only useful if you have announced before what every holder checks. */
export function isLocked(name: string): boolean {
  return existsSync(`${baseOf(name)}.lock`);
}

/** The names of the locks that dead processes hold. */
export function abandonedLocks(): string[] {
  return namesLeftLocked(locksDir());
}

/** Removes the locks that dead processes left. */
export async function sweepStaleLocks(): Promise<void> {
  await sweepLocks(locksDir());
}

function baseOf(name: string): string {
  return join(locksDir(), createHash("sha256").update(name).digest("hex").slice(0, 32));
}

function locksDir(): string {
  return privateSubdirectory("locks");
}

async function acquire(base: string, name: string, wait: Wait): Promise<Contender> {
  try {
    const contender = createContender(base, name);
    try {
      for (let pause = 2; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
        const holder = await contender.tryOnce();
        if (holder === undefined) return contender;
        await wait.pause(pause, holder);
      }
    } catch (error) {
      contender.leave();
      throw error;
    }
  } catch (error) {
    throw toSandboxError(error, { operation: "lock" });
  }
}

function joinLine(key: string): { ahead: Promise<void> | undefined; step: () => void } {
  const ahead = lines.get(key);
  let step = (): void => undefined;
  const mine = new Promise<void>((resolve) => {
    step = resolve;
  });
  const line = ahead === undefined ? mine : ahead.then(() => mine);
  lines.set(key, line);
  void line.then(() => {
    if (lines.get(key) === line) lines.delete(key);
  });
  return { ahead, step };
}

interface Wait {
  /** Without a turn to wait for it returns at once. */
  until(turn: Promise<void> | undefined): Promise<void>;
  pause(milliseconds: number, holder: LockHolder): Promise<void>;
}

function createWait(name: string, { timeout = DEFAULT_TIMEOUT, signal }: LockOptions): Wait {
  const deadline = performance.now() + timeout;
  const left = (): number => Math.max(0, deadline - performance.now());
  const isAborted = (): boolean => signal?.aborted === true;
  const aborted = (): SandboxError =>
    new SandboxError("aborted", `Aborted while waiting for the lock "${name}"`, { cause: signal?.reason });
  const tooLong = (pid: number | undefined): SandboxError =>
    new SandboxError(
      "unavailable",
      `The lock "${name}" is still held by process ${pid ?? "unknown"} after ${timeout} ms`,
      {
        operation: "lock",
        hint: "Wait for that process or end it, which frees the lock.",
      },
    );
  return {
    async until(turn) {
      if (isAborted()) throw aborted();
      if (turn === undefined) return;
      const giveUp = new AbortController();
      const limits = signal === undefined ? giveUp.signal : AbortSignal.any([giveUp.signal, signal]);
      const late = delay(left(), "late" as const, { signal: limits }).catch(() => "stopped" as const);
      try {
        const first = await Promise.race([turn.then(() => "turn" as const), late]);
        if (isAborted()) throw aborted();
        if (first !== "turn") throw tooLong(process.pid);
      } finally {
        giveUp.abort();
      }
    },
    async pause(milliseconds, holder) {
      if (left() === 0) throw tooLong(holder.owner?.pid);
      const jittered = milliseconds * (0.5 + Math.random());
      await delay(Math.min(jittered, left()), undefined, { ...(signal && { signal }) }).catch(() => {
        throw aborted();
      });
    },
  };
}
