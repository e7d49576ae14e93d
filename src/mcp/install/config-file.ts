import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, unlinkSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import { writeFileAtomic } from "../../machine/atomic-file.js";

const LARGEST = 32 << 20;

/** A configuration file as it is. */
export interface ConfigFile {
  readonly text: string;
  readonly mode: number;
}

/** Reads a client's configuration; undefined if there is none. Follows no link on the way from `below` to the file. */
export function readConfig(file: string, below: string): ConfigFile | undefined {
  let path = below;
  for (const part of relative(below, dirname(file)).split(sep).filter(Boolean)) {
    path = join(path, part);
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return undefined;
    if (!stat.isDirectory()) throw refused(path, stat.isSymbolicLink() ? "is a link" : "is not a directory");
  }
  const stat = lstatSync(file, { throwIfNoEntry: false });
  if (stat === undefined) return undefined;
  if (!stat.isFile()) throw refused(file, stat.isSymbolicLink() ? "is a link" : "is not a regular file");
  const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size, mode } = fstatSync(fd);
    if (size > LARGEST) throw refused(file, `has ${size} bytes`);
    return { text: readFileSync(fd, "utf8"), mode: mode & 0o777 };
  } finally {
    closeSync(fd);
  }
}

/** Replaces a configuration at once, with this mode. */
export async function replaceConfig(file: string, text: string, mode: number): Promise<void> {
  await writeFileAtomic(file, text, mode);
}

/** Removes a configuration that has become empty. */
export function removeConfig(file: string): void {
  unlinkSync(file);
}

function refused(path: string, why: string): SandboxError {
  return new SandboxError("conflict", `${path} ${why}; nothing was changed`, {
    retryable: false,
    hint: "configure the client by hand: glovebox mcp install --print shows the entry",
  });
}
