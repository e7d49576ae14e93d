import { open } from "node:fs/promises";
import type { Driver, DriverExit, DriverProcess } from "../../src/sandbox/types.js";
import { change } from "../support/change.js";
import type { Mutant } from "./mutant.js";

const KILLED: DriverExit = { exitCode: 137, signal: "SIGKILL" };

/** Says at once that a killed process is gone, and does something else about it. */
function pretendsToKill(really: (process: DriverProcess) => void): (driver: Driver) => Driver {
  return (driver) =>
    change(driver, {
      async start({ timeout: _, ...spec }) {
        const process = await driver.start(spec);
        let pretend = (_exit: DriverExit): void => undefined;
        const pretended = new Promise<DriverExit>((resolve) => {
          pretend = resolve;
        });
        return change(process, {
          async kill(signal) {
            if (signal !== "SIGKILL") return process.kill(signal);
            really(process);
            pretend(KILLED);
          },
          wait: () => Promise.race([process.wait(), pretended]),
        });
      },
    });
}

/** Mutants that lie about how a command, a call or a sandbox ended. */
export const endingMutants: readonly Mutant[] = [
  {
    name: "leaves the child alive",
    caught: "deadline.kills.child-in-group",
    because: /is still alive$/,
    driver: pretendsToKill(() => undefined),
  },
  {
    name: "returns before the tree is dead",
    caught: "deadline.kills.ignores-term",
    because: /is still alive$/,
    driver: pretendsToKill((process) => {
      setTimeout(() => void process.kill("SIGKILL"), 2_500).unref();
    }),
  },
  {
    name: "kills every command at the deadline of one",
    caught: "deadline.others-live",
    because: /^the other: expected/,
    driver(driver) {
      const all = new Set<DriverProcess>();
      return change(driver, {
        async start(spec) {
          const process = await driver.start(spec);
          all.add(process);
          return change(process, {
            async kill(signal) {
              for (const each of all) await each.kill(signal);
            },
          });
        },
      });
    },
  },
  {
    name: "sends SIGKILL whatever the signal",
    caught: "spawn.kill",
    because: /^exit code of the one that handles it: expected 5, got 137/,
    driver: ends((process) => ({ kill: () => process.kill("SIGKILL") })),
  },
  {
    name: "swallows the exit code",
    caught: "exec.exit.codes",
    because: /^exit 1: expected/,
    driver: ends((process) => ({ wait: async () => ({ ...(await process.wait()), exitCode: 0 }) })),
  },
  {
    name: "reports a lost channel as exit 127",
    caught: "lifecycle.lost",
    because: /^the exec under way: expected backend_lost, but it resolved to .*exitCode: 127/,
    driver: ends((process) => ({
      stdout: untilLost(process.stdout),
      stderr: untilLost(process.stderr),
      wait: () => process.wait().catch(() => ({ exitCode: 127 })),
    })),
  },
  {
    name: "leaks a descriptor of the host with every command",
    caught: "lifecycle.descriptors",
    because: /descriptors/,
    alone: true,
    driver: (driver) =>
      change(driver, {
        async start(spec) {
          leaked.push(await open("/dev/null"));
          return driver.start(spec);
        },
      }),
  },
  {
    name: "never removes the folder",
    caught: "lifecycle.teardown-removes",
    because: /is still there$/,
    driver: (driver) => change(driver, { close: async () => undefined }),
  },
  {
    name: "never ends the guest",
    caught: "lifecycle.census",
    because: /^what is left: expected \[\], got .*the guest of/,
    alone: true,
    driver: (driver) => change(driver, { close: async () => undefined }),
  },
];

/** Kept so that no collection of garbage closes what a mutant leaks; the test closes them. */
export const leaked: Awaited<ReturnType<typeof open>>[] = [];

function ends(alter: (process: DriverProcess) => Partial<DriverProcess>): (driver: Driver) => Driver {
  return (driver) =>
    change(driver, {
      async start(spec) {
        const process = await driver.start(spec);
        return change(process, alter(process));
      },
    });
}

async function* untilLost(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* source;
  } catch {
    return;
  }
}
