import { realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { SandboxError } from "../../contracts/errors.js";

/** Where the files of sandboxes are made, as a path without links. */
export function temporaryDirectory(): string {
  try {
    return realpathSync.native(tmpdir());
  } catch (cause) {
    const hint = "set TMPDIR to a directory that you can write";
    throw new SandboxError("not_found", `There is no directory ${tmpdir()} for temporary files`, { cause, hint });
  }
}
