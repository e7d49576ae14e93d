import { lstatSync, type Stats } from "node:fs";
import { SandboxError } from "../../../../contracts/errors.js";
import { readRegularFile } from "../../../util/beneath.js";

const MAX_BYTES = 16 << 20;
const MAX_TEXT = 1 << 20;

/**
 * Reads a file of a source, which may come from anywhere; undefined when it is missing.
 *
 * A link, a pipe or a device in its place is `tampered`: it would lead to another file, or block.
 */
export function readUntrustedFile(path: string, maxBytes: number = MAX_BYTES): Buffer | undefined {
  try {
    return readRegularFile(path, maxBytes);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw ["ELOOP", "ENXIO", "not_regular_file"].includes(code) ? unsafePart(path, "a plain file") : error;
  }
}

/** As `readUntrustedFile`, for a small text file; empty when it is missing or anything else. */
export function readUntrustedText(path: string): string {
  try {
    return readUntrustedFile(path, MAX_TEXT)?.toString("utf8") ?? "";
  } catch {
    return "";
  }
}

/** What is at a path, without following links; undefined when nothing is. */
export function lookAt(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    // A parent is a file, or a link to itself.
    if (["ENOTDIR", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}

/** The error for a part of a repository that is a link, a pipe or the like. */
export function unsafePart(path: string, wanted: string): SandboxError {
  return new SandboxError("tampered", `${path} is not ${wanted}`, {
    hint: "This repository could make Glovebox read or write other files. Clone it with git clone --no-local, and open the clone",
  });
}
