import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeAll, beforeEach, expect } from "vitest";
import type { Sandbox } from "../../src/sandbox/types.js";
import { listSandboxes, type OpenOptions, openSandbox, removeSandbox } from "../../src/sandbox.js";
import { describeUnless } from "../support/describe-unless.js";
import { BUSYBOX, useEngine, whyNoDocker } from "../support/docker/engine.js";
import { SET_UP_LIMIT } from "../support/run/set-up-limit.js";
import { createScratch, type Scratch } from "../support/scratch.js";

/** A backend that the adapters are tried on. */
export interface TriedBackend {
  readonly name: string;
  /** Options that open a sandbox there. */
  readonly options: OpenOptions;
  /** Opens a sandbox that is closed after the test. */
  open(options?: OpenOptions): Promise<Sandbox>;
}

/** Runs tests on the local backend and on Docker, each with a ledger of its own that must be empty afterwards. */
export function onEachBackend(tests: (backend: TriedBackend) => void): void {
  describeUnless(undefined, "on local", {}, () => within({ backend: "local" }, tests));
  describeUnless(whyNoDocker(BUSYBOX), "on docker", {}, () => {
    beforeAll(async () => {
      await useEngine(BUSYBOX);
    }, SET_UP_LIMIT);
    within({ backend: "docker", image: BUSYBOX }, tests);
  });
}

function within(options: OpenOptions & { backend: string }, tests: (backend: TriedBackend) => void): void {
  let scratch: Scratch;
  const opened: Sandbox[] = [];
  beforeEach(() => {
    scratch = createScratch();
  });
  afterEach(async () => {
    for (const sandbox of opened.splice(0)) await sandbox.teardown();
    const left = await listSandboxes();
    for (const { id } of left) await removeSandbox(id);
    scratch.remove();
    expect(left).toEqual([]);
  });
  tests({
    name: options.backend,
    options,
    async open(more = {}) {
      const sandbox = await openSandbox({ paths: "sandbox", ...options, ...more });
      opened.push(sandbox);
      return sandbox;
    },
  });
}

/** A command that never ends and shows that it runs. */
export const HEARTBEAT = "while :; do echo >> beats; sleep 0.1; done";

/** Whether `HEARTBEAT` has begun. */
export async function beats(sandbox: Sandbox): Promise<boolean> {
  return (await sandbox.stat("beats")) !== null;
}

/** Whether nothing of `HEARTBEAT` runs any more. */
export async function isStill(sandbox: Sandbox): Promise<boolean> {
  const before = await sandbox.stat("beats");
  await delay(1000);
  return (await sandbox.stat("beats"))?.size === before?.size;
}
