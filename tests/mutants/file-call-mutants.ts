import { appendFile, cp } from "node:fs/promises";
import type { Driver } from "../../src/sandbox/types.js";
import { change } from "../support/change.js";
import type { Mutant } from "./mutant.js";

/** The methods of the base driver that only some drivers have. */
type Full = Required<Pick<Driver, "listDetails" | "statTarget" | "readStream" | "copy" | "writeStream">>;

function broken(replace: (driver: Driver & Full) => Partial<Driver>): (driver: Driver) => Driver {
  return (driver) => change(driver, replace(driver as Driver & Full));
}

/** Mutants that mistreat trees, streams and signals. */
export const fileCallMutants: readonly Mutant[] = [
  {
    name: "follows the links in a list with details",
    caught: "files.details",
    because: /^name, type, size and mode: expected/,
    driver: broken((driver) => ({
      async listDetails(path) {
        const entries = await driver.listDetails(path);
        const followed = entries.map(async (entry) => ({
          ...entry,
          ...(await driver.statTarget(`${path}/${entry.name}`)),
        }));
        return (await Promise.all(followed)).filter(({ type }) => type !== "symlink");
      },
    })),
  },
  {
    name: "ends a long list early",
    caught: "files.details-large",
    because: /^count, first and last: expected/,
    driver: broken((driver) => ({ listDetails: async (path) => (await driver.listDetails(path)).slice(0, 1_000) })),
  },
  {
    name: "describes a link that it should follow",
    caught: "files.follow",
    because: /^link: expected/,
    driver: broken((driver) => ({ statTarget: (path) => driver.stat(path) })),
  },
  {
    name: "takes a link in a loop for a missing file",
    caught: "files.follow",
    because: /^a loop: expected invalid_path, but it resolved to null/,
    driver: broken((driver) => ({
      statTarget: (path) =>
        driver.statTarget(path).catch((error: { code?: string }) => {
          if (error.code === "invalid_path") return null;
          throw error;
        }),
    })),
  },
  {
    name: "removes a full directory without being asked to",
    caught: "files.remove",
    because: /^a full directory: expected conflict, but it resolved to true/,
    driver: broken((driver) => ({ removeDirectory: (path) => driver.remove(path, { recursive: true }) })),
  },
  {
    name: "leaves a renamed file where it was",
    caught: "files.rename",
    because: /^what is there: expected/,
    driver: broken((driver) => ({ rename: (from, to) => driver.copy(from, to, { recursive: true }) })),
  },
  {
    name: "copies what a link leads to",
    caught: "files.copy",
    because: /^the copy: expected/,
    driver: broken((driver) => ({
      async copy(from, to, opts) {
        if (!opts.recursive) return await driver.copy(from, to, opts);
        await driver.copy(from, to, opts);
        await driver.remove(`${to}/link`, { recursive: false });
        await cp(`${from}/link`, `${to}/link`, { dereference: true });
      },
    })),
  },
  {
    name: "replaces a file that it should add to",
    caught: "files.append",
    because: /^the content: expected/,
    driver: broken((driver) => ({ append: (file) => driver.write([file]) })),
  },
  {
    name: "ignores where a part of a file starts",
    caught: "files.read-stream",
    because: /^from a position on: expected/,
    driver: broken((driver) => ({ readStream: (path, opts) => driver.readStream(path, { ...opts, start: 0 }) })),
  },
  {
    name: "reads on after an abort",
    caught: "files.read-stream-pulled",
    because: /^the aborted stream: expected aborted, but it resolved/,
    sandbox: (sandbox) => change(sandbox, { readStream: (path) => sandbox.readStream(path) }),
  },
  {
    name: "writes a stream in place",
    caught: "files.write-stream",
    because: /^the old file: expected/,
    driver: broken((driver) => ({
      async writeStream({ path, source, mode }) {
        await driver.write([{ path, content: new Uint8Array(), mode }]);
        for await (const chunk of source) await appendFile(path, chunk);
      },
    })),
  },
  {
    name: "does not look at the signal of a file call",
    caught: "files.abort",
    because: /^writeFile: expected aborted, but it resolved/,
    sandbox: (sandbox) =>
      change(sandbox, {
        writeFile: (path, content, { signal: _, ...opts } = {}) => sandbox.writeFile(path, content, opts),
      }),
  },
];
