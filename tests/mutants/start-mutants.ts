import type { Driver, StartSpec } from "../../src/sandbox/types.js";
import { change } from "../support/change.js";
import type { Mutant } from "./mutant.js";

/** Breaks what a command is started with. */
function startingWith(alter: (spec: StartSpec, driver: Driver) => Partial<StartSpec>): (driver: Driver) => Driver {
  return (driver) => change(driver, { start: (spec) => driver.start({ ...spec, ...alter(spec, driver) }) });
}

/** Mutants that start something else than what was asked for. */
export const startMutants: readonly Mutant[] = [
  {
    name: "ignores cwd",
    caught: "exec.cwd.relative",
    because: /^pwd with cwd a: expected/,
    driver: startingWith((_, { workDir }) => ({ cwd: workDir })),
  },
  {
    name: "ignores env",
    caught: "exec.env.values",
    because: /^value of 5 characters: expected "plain", got ""/,
    driver: startingWith((_, { baseEnv }) => ({ env: baseEnv })),
  },
  {
    name: "passes the environment of the host on",
    caught: "exec.env.host-absent",
    because: /^a command sees a host variable/,
    alone: true,
    driver: startingWith(({ env }) => ({ env: { ...(process.env as Record<string, string>), ...env } })),
  },
  {
    name: "runs argv through a shell",
    caught: "exec.argv.verbatim",
    because: /^(arguments seen inside|exit code|what an interpreted argument would have made): expected/,
    driver: startingWith(({ argv }) => ({ argv: ["/bin/sh", "-c", argv.map((arg) => `"${arg}"`).join(" ")] })),
  },
  {
    name: "leaks a descriptor into the command",
    caught: "exec.fds",
    because: /^descriptors of ls/,
    driver: startingWith(({ argv }) => ({
      argv: ["/bin/sh", "-c", 'exec 9</dev/null; exec "$@"', "sh", ...argv],
    })),
  },
  {
    name: "keeps stdin open",
    caught: "exec.stdin.absent",
    because: /no result within/,
    patience: 6_000,
    driver: (driver) =>
      change(driver, {
        async start(spec) {
          const process = await driver.start({ ...spec, stdin: "pipe" });
          return change(process, { closeStdin: async () => undefined });
        },
      }),
  },
];
