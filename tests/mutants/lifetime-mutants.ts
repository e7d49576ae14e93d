import type { SandboxEvent } from "../../contracts/types.js";
import { change } from "../support/change.js";
import type { Mutant } from "./mutant.js";

/** Mutants that describe, name, open or end a sandbox and its snapshots wrongly. */
export const lifetimeMutants: readonly Mutant[] = [
  {
    name: "gives no reason for what it lacks",
    caught: "lifecycle.reasons",
    because: /^what has a reason: expected/,
    driver: (driver) => change(driver, { capabilities: { ...driver.capabilities, reasons: {} } }),
  },
  {
    name: "removes a sandbox before its ttl is over",
    caught: "lifetime.ttl",
    because: /^it ended before its ttl/,
    options: (opts) => (opts.ttl === undefined ? opts : { ...opts, ttl: Math.ceil(opts.ttl / 5) }),
  },
  {
    name: "keeps a kept sandbox whose ttl is over",
    caught: "lifetime.ttl",
    because: /^reopening it: expected not_found/,
    keepsExpired: true,
  },
  {
    name: "removes a kept sandbox that was idle",
    caught: "lifetime.idle",
    because: /not_found|No kept sandbox/,
    options: ({ keep: _, ...opts }) => opts,
  },
  {
    name: "does not say why it closed an idle sandbox",
    caught: "lifetime.idle",
    because: /^the event: expected/,
    options: ({ onEvent, ...opts }) => ({
      ...opts,
      ...(onEvent && { onEvent: (event: SandboxEvent) => onEvent({ ...event, message: "it is gone" }) }),
    }),
  },
  {
    name: "drops the name of a snapshot",
    caught: "snapshot.named",
    because: /^a name in use: expected conflict/,
    sandbox: (sandbox) =>
      change(sandbox, {
        snapshot: async (opts) => {
          if (opts?.name !== undefined && !/^kit\./.test(opts.name)) return await sandbox.snapshot(opts);
          return await sandbox.snapshot();
        },
      }),
  },
  {
    name: "opens an empty sandbox instead of a snapshot",
    caught: "snapshot.open",
    because: /^names: expected/,
    options: ({ snapshot: _, ...opts }) => opts,
  },
  {
    name: "takes a snapshot that nobody waits for",
    caught: "snapshot.abort",
    because: /^an aborted signal: expected aborted/,
    sandbox: (sandbox) => change(sandbox, { snapshot: async () => await sandbox.snapshot() }),
  },
];
