import type { Sandbox, SandboxOptions } from "../../src/sandbox/types.js";
import { removeSandbox } from "../../src/sandbox.js";
import type { ConformanceHarness } from "../../src/testing.js";
import { createLocalHarness } from "../support/local/harness.js";

type Open = (opts: SandboxOptions) => Promise<Sandbox>;

/** A way to open sandboxes that is broken on purpose, and the case of the kit that must notice. */
export interface OpenMutant {
  readonly name: string;
  /** The case that is there to catch it. */
  readonly caught: string;
  /** What that case must say. */
  readonly because: RegExp;
  /** The broken `openSandbox`; each run of a case has one of its own. */
  mutate(open: Open): Open;
}

/** The kit's way to such a mutant of the local backend, or to the backend itself; `cleanUp` removes what was left. */
export function createOpenHarness(mutant?: OpenMutant): ConformanceHarness & { cleanUp(): Promise<void> } {
  const base = createLocalHarness(mutant?.name ?? "base", () => ({}));
  const opened: Sandbox[] = [];
  const open = mutant?.mutate((opts) => base.open(opts)) ?? ((opts: SandboxOptions) => base.open(opts));
  return {
    ...base,
    async open(opts = {}) {
      const sandbox = await open(opts);
      opened.push(sandbox);
      return sandbox;
    },
    async cleanUp() {
      for (const sandbox of opened.splice(0).reverse()) {
        await sandbox.teardown();
        await removeSandbox(sandbox.id).catch(() => undefined);
      }
    },
  };
}
