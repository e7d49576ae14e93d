import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, realpathSync, type Stats } from "node:fs";
import { dirname } from "node:path";
import { SandboxError, toSandboxError } from "../../../contracts/errors.js";

/** Far more than such a file needs. */
const MAX_BYTES = 64 * 1024;

/** A file of settings that is there, and how to recognize it as long as nobody changes it. */
export interface FoundFile {
  readonly path: string;
  readonly identity: string;
}

/** Looks for a file of settings with one call of the system. Undefined: there is nothing at this path. */
export function findSettingsFile(path: string): FoundFile | undefined {
  try {
    return { path, identity: identityOf(lstatSync(path)) };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw toSandboxError(error);
  }
}

/**
 * Reads a file of settings that nobody but its owner can have written: a regular file and no link, which belongs to root or, if `isUsers`, to
 * this user, and which others can neither write nor replace.
 */
export function readSettingsFile(path: string, isUsers: boolean): string {
  let file: number;
  try {
    // Without O_NONBLOCK, opening a FIFO would wait for a writer.
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ELOOP") throw toSandboxError(error);
    throw unsafe(path, "is a symbolic link", "put the file itself there");
  }
  try {
    const found = fstatSync(file);
    if (!found.isFile()) throw unsafe(path, "is not a regular file", "put a YAML file there");
    assertOwned(path, found, isUsers);
    assertPlace(dirname(realpathSync(path)), isUsers);
    if (found.size > MAX_BYTES) {
      throw new SandboxError("limit_exceeded", `${path} has ${found.size} bytes, at most ${MAX_BYTES} are possible`);
    }
    return readText(file);
  } finally {
    closeSync(file);
  }
}

/** It may grow while it is read. */
function readText(file: number): string {
  const bytes = Buffer.alloc(MAX_BYTES);
  let length = 0;
  for (;;) {
    const read = readSync(file, bytes, length, MAX_BYTES - length, length);
    if (read === 0) return bytes.toString("utf8", 0, length);
    length += read;
  }
}

/** Whoever can rename a directory above the file can put another file in its place. */
function assertPlace(directory: string, isUsers: boolean): void {
  const found = lstatSync(directory);
  // In a sticky directory, such as /tmp, nobody can replace what belongs to others.
  const isSticky = (found.mode & 0o1000) !== 0;
  assertOwned(directory, isSticky ? Object.assign(found, { mode: 0 }) : found, isUsers);
  const above = dirname(directory);
  if (above !== directory) assertPlace(above, isUsers);
}

function assertOwned(path: string, { uid, mode }: Stats, isUsers: boolean): void {
  const self = process.geteuid?.();
  if (self === undefined) return;
  if (uid !== 0 && !(isUsers && uid === self)) {
    const who = isUsers ? "neither to you nor to root" : "not to root";
    throw unsafe(path, `belongs to user ${uid}, ${who}`, `chown ${isUsers ? self : 0} ${path}`);
  }
  if ((mode & 0o022) !== 0) throw unsafe(path, "can be written by other users", `chmod go-w ${path}`);
}

function unsafe(path: string, what: string, hint: string): SandboxError {
  return new SandboxError("permission_denied", `${path} ${what}`, { hint });
}

function identityOf({ dev, ino, size, mtimeMs, ctimeMs, mode, uid }: Stats): string {
  return [dev, ino, size, mtimeMs, ctimeMs, mode, uid].join(":");
}
