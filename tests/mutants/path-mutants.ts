import { readdir } from "node:fs/promises";
import type { Driver, FileCalls } from "../../src/sandbox/types.js";
import { change } from "../support/change.js";
import type { Mutant } from "./mutant.js";

/** A driver whose calls for any path are broken. */
function brokenAnywhere(replace: (calls: Required<FileCalls>) => Partial<FileCalls>): (driver: Driver) => Driver {
  return (driver) => {
    const calls = driver.anywhere as Required<FileCalls>;
    return change(driver, { anywhere: change(calls, replace(calls)) });
  };
}

/** Mutants that lose an option about paths. */
export const pathMutants: readonly Mutant[] = [
  {
    name: "forgets the place that it is given",
    caught: "workdir.invalid",
    because: /^workDir "app": expected invalid_argument/,
    options: ({ workDir: _, ...opts }) => opts,
  },
  {
    name: "has no other file calls than those of the work directory",
    caught: "paths.sandbox.files",
    because: /path confinement violation: \/tmp\/paths-/,
    driver: (driver) => change(driver, { anywhere: driver }),
  },
  {
    name: "loses the first byte of what it reads outside",
    caught: "paths.sandbox.trees",
    because: /^all of it: expected 0/,
    driver: brokenAnywhere((calls) => ({
      read: async (path) => (await calls.read(path))?.subarray(1) ?? null,
    })),
  },
  {
    name: "starts in the work directory if the cwd is elsewhere",
    caught: "paths.sandbox.cwd",
    because: /^cwd: expected/,
    driver: (driver) =>
      change(driver, {
        start: (spec) =>
          driver.start(`${spec.cwd}/`.startsWith(`${driver.workDir}/`) ? spec : { ...spec, cwd: driver.workDir }),
      }),
  },
  {
    name: "follows no link outside the work directory",
    caught: "paths.sandbox.links",
    because: /^an absolute link: expected/,
    driver: brokenAnywhere((calls) => ({
      read: async (path) => ((await calls.stat(path))?.type === "symlink" ? null : await calls.read(path)),
    })),
  },
  {
    name: "follows the links of /proc",
    caught: "paths.sandbox.processes",
    because: /^listDirectory of \/proc\/self\/root: expected/,
    driver: brokenAnywhere(() => ({ list: (path) => readdir(path) })),
  },
  {
    name: "starts a command where a link of /proc leads",
    caught: "paths.sandbox.processes",
    because: /^exec of \/proc\/self\/root: expected/,
    driver: (driver) =>
      change(driver, {
        start: (spec) => driver.start(spec.cwd === "/proc/self/root" ? { ...spec, cwd: "/" } : spec),
      }),
  },
];
