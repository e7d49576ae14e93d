import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect } from "vitest";
import { startEngine, stopEngine, type TestEngine, waitForEngine } from "../../../scripts/docker-engine.mjs";
import { ensureImage } from "../../../scripts/docker-images.mjs";
import { describeUnless } from "../describe-unless.js";
import { setEnv } from "../environment.js";
import { SET_UP_LIMIT } from "../run/set-up-limit.js";
import { createScratch, type Scratch } from "../scratch.js";
import { BUSYBOX, whyNoDocker } from "./engine.js";

/** An engine of these tests alone: they may kill and stop it, and what a dead owner left on it nobody else sweeps. */
export interface OwnEngine {
  /** The process of the engine, which is started again when it ends. */
  daemon(): Promise<number>;
  /** Ends it without a word; resolves once another one answers. */
  kill(): Promise<{ back: Promise<void> }>;
  /** Runs something while it answers nobody. */
  stopped<T>(work: () => Promise<T>): Promise<T>;
}

/** Whether all threads of a process stand still: on a busy machine some go on for a moment after the signal. */
function areStopped(pid: number): boolean {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.every((thread) => /^State:\s*T/m.test(readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8")));
}

/** Runs tests with such an engine as `DOCKER_HOST`, or says why they are not run. */
export function describeOwnEngine(name: string, tests: (engine: OwnEngine) => void, dataSize?: number): void {
  describeUnless(whyNoDocker(BUSYBOX), name, {}, () => {
    const place = mkdtempSync(join(tmpdir(), "glovebox-faults-"));
    let engine: TestEngine;
    let scratch: Scratch | undefined;
    let restore = (): void => undefined;
    beforeAll(async () => {
      scratch = createScratch();
      engine = await startEngine(join(place, "engine"), dataSize === undefined ? {} : { dataSize });
      await ensureImage(engine.host, BUSYBOX);
      restore = setEnv({ DOCKER_HOST: engine.host });
    }, SET_UP_LIMIT);
    afterAll(async () => {
      if (engine !== undefined) await stopEngine(engine);
      restore();
      rmSync(place, { recursive: true, force: true });
      scratch?.remove();
    });
    const daemon = async (): Promise<number> => {
      for (let i = 0; i < 600; i++) {
        const pid = engine.daemon();
        if (pid !== undefined) return pid;
        await delay(50);
      }
      throw new Error("the engine does not run");
    };
    tests({
      daemon,
      async kill() {
        process.kill(await daemon(), "SIGKILL");
        const again = async (error: Error): Promise<void> => {
          // Seen once: an engine that was killed in the middle of its work can hang when it starts.
          console.log(`the engine is killed once more: ${error.message}`);
          process.kill(await daemon(), "SIGKILL");
          await waitForEngine(engine.folder, undefined, 60_000);
        };
        return { back: waitForEngine(engine.folder, undefined, 60_000).catch(again) };
      },
      async stopped(work) {
        const pid = await daemon();
        process.kill(pid, "SIGSTOP");
        try {
          await expect.poll(() => areStopped(pid)).toBe(true);
          return await work();
        } finally {
          process.kill(pid, "SIGCONT");
        }
      },
    });
  });
}
