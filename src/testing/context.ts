import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Sandbox, SandboxOptions } from "../sandbox/types.js";
import { ConformanceSkip, check, equal, within } from "./assert.js";
import type { ConformanceContext, ConformanceHarness, SandboxPool } from "./types.js";

const TEARDOWN_BOUND = 60_000;

/** A context that can be closed: `close` cleans everything up and rejects with the first failure. */
export interface OwnedContext extends ConformanceContext {
  /** After a failed case its sandbox does not go back to the pool. */
  close(hasFailed?: boolean): Promise<void>;
}

/** Opens the sandbox of a case, or takes one from the pool, and tracks everything the case makes. */
export async function openContext(
  harness: ConformanceHarness,
  opts?: SandboxOptions,
  pool?: SandboxPool,
): Promise<OwnedContext> {
  const cleanUps: (() => Promise<unknown>)[] = [];
  let isClosed = false;
  let failed = false;

  // A case that timed out may still be running: clean up at once what it makes now.
  function own(cleanUp: () => Promise<unknown>): void {
    if (isClosed) cleanUp().catch(() => undefined);
    else cleanUps.push(cleanUp);
  }

  async function open(more?: SandboxOptions): Promise<Sandbox> {
    const sandbox = await harness.open(more);
    check(typeof sandbox?.teardown === "function", "open() did not return a sandbox: it has no teardown");
    own(() => within(TEARDOWN_BOUND, "teardown", sandbox.teardown()));
    return sandbox;
  }

  async function take(from: SandboxPool): Promise<Sandbox> {
    const sandbox = await from.take();
    own(() => (failed ? within(TEARDOWN_BOUND, "teardown", sandbox.teardown()) : from.give(sandbox)));
    return sandbox;
  }

  async function close(hasFailed = false): Promise<void> {
    isClosed = true;
    failed = hasFailed;
    const failures: unknown[] = [];
    for (const cleanUp of cleanUps.splice(0).reverse()) {
      try {
        await cleanUp();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  return {
    harness,
    sandbox: pool === undefined ? await open(opts) : await take(pool),
    open,
    close,
    async hostDirectory() {
      const directory = await mkdtemp(join(tmpdir(), "glovebox-conformance-"));
      own(() => rm(directory, { recursive: true, force: true }));
      return directory;
    },
    defer: own,
    skip(reason) {
      throw new ConformanceSkip(reason);
    },
  };
}

/** Fails unless the sandbox still runs commands: a dead one would pass every case that expects errors. */
export async function answers(sandbox: Sandbox): Promise<void> {
  const word = randomUUID();
  const what = "a plain echo after the case";
  const result = await within(30_000, what, sandbox.exec({ argv: ["echo", word] }));
  equal([result.exitCode, result.stdout], [0, `${word}\n`], what);
}
