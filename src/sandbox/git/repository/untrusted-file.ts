import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { SandboxError } from "../../../../contracts/errors.js";

const MAX_BYTES = 16 << 20;
const MAX_TEXT = 1 << 20;

/**
 * Reads a file of a repository that may come from anywhere; undefined when it is not there.
 *
 * A link, a pipe or a device in its place is `tampered`: following it would read something else, or wait for ever.
 */
export function readUntrustedFile(path: string, maxBytes: number = MAX_BYTES): Buffer | undefined {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    if (code === "ELOOP" || code === "ENXIO") throw unsafePart(path, "a plain file");
    throw error;
  }
  try {
    const found = fstatSync(fd);
    if (!found.isFile()) throw unsafePart(path, "a plain file");
    if (found.size > maxBytes) throw new SandboxError("limit_exceeded", `${path} has more than ${maxBytes} bytes`);
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** As `readUntrustedFile`, for a small file of text; empty where it is missing or something else. */
export function readUntrustedText(path: string): string {
  try {
    return readUntrustedFile(path, MAX_TEXT)?.toString("utf8") ?? "";
  } catch {
    return "";
  }
}

/** What is at a path, itself and not what it leads to; undefined when nothing is. */
export function lookAt(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    // Something above it is a file, or a link to itself.
    if (["ENOTDIR", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}

/** The error for a part of a repository that is a link, a pipe or the like. */
export function unsafePart(path: string, wanted: string): SandboxError {
  return new SandboxError("tampered", `${path} is not ${wanted}`, {
    hint: "This repository could lead Glovebox elsewhere. Clone it anew with git clone --no-local, and open the clone",
  });
}
