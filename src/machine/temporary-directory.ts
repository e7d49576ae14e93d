import { realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { SandboxError } from "../../contracts/errors.js";

/** Where the files of sandboxes are made, as a path without links. */
export function temporaryDirectory(): string {
  try {
    return realpathSync.native(tmpdir());
  } catch (cause) {
    const hint = "set TMPDIR to a directory that you can write to";
    throw new SandboxError("not_found", `The directory for temporary files does not exist: ${tmpdir()}`, {
      cause,
      hint,
    });
  }
}
