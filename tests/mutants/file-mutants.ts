import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { Driver } from "../../src/sandbox/types.js";
import { change } from "../support/change.js";
import type { Mutant } from "./mutant.js";

type Written = Parameters<Driver["write"]>[0][number];

function writing(alter: (file: Written) => Written): (driver: Driver) => Driver {
  return (driver) => change(driver, { write: (files) => driver.write(files.map(alter)) });
}

/** Mutants that mistreat files. */
export const fileMutants: readonly Mutant[] = [
  {
    name: "follows a symlink out when it reads",
    caught: "links.read-out",
    because: /^readFile of file: expected path_confinement, but it resolved to/,
    driver: (driver) => change(driver, { read: (path) => readFile(path).catch(() => null) }),
  },
  {
    name: "follows a symlink out when it writes",
    caught: "links.write-out",
    because: /^writeFile to a link: expected path_confinement, but it resolved/,
    driver: (driver) => change(driver, { write: inPlace }),
  },
  {
    name: "writes a file in place",
    caught: "files.atomic",
    because: /^exit code of the reader; .* expected 0, got 4/,
    driver: (driver) =>
      change(driver, {
        async write(files) {
          for (const file of files) await inPlace([{ ...file, content: file.content.subarray(0, 1) }]);
          await inPlace(files);
        },
      }),
  },
  {
    name: "gives every file the same mode bits",
    caught: "files.modes",
    because: /^modes: expected/,
    driver: writing((file) => ({ ...file, mode: 0o644 })),
  },
  {
    name: "gives a file that it replaces the mode bits of a new one",
    caught: "files.modes-kept",
    because: /^modes: expected/,
    driver: writing((file) => ({ ...file, mode: file.mode ?? 0o644 })),
  },
  {
    name: "takes bytes for text",
    caught: "files.binary",
    because: /^readBytes: expected/,
    driver: writing((file) => ({ ...file, content: Buffer.from(Buffer.from(file.content).toString("utf8")) })),
  },
  {
    name: "takes an empty file for a missing one",
    caught: "files.empty",
    because: /^readFile: expected "", got null/,
    driver: (driver) =>
      change(driver, {
        async read(path) {
          const content = await driver.read(path);
          return content?.length === 0 ? null : content;
        },
      }),
  },
];

async function inPlace(files: readonly Written[]): Promise<void> {
  for (const { path, content, mode } of files) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
    if (mode !== undefined) await chmod(path, mode);
  }
}
