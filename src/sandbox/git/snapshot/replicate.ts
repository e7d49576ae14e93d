import { execFile } from "node:child_process";
import { toSandboxError } from "../../../../contracts/errors.js";
import { archiveError, guestBinary } from "../../guest.js";
import { MAX_IMPORT_BYTES } from "../../types.js";

/**
 * Makes a directory, whose sandbox has run nothing yet, equal to the directory of another sandbox. Copies only what differs, by content. `spared`
 * is a name at the top that stays as it is.
 */
export async function replicateTree(
  from: string,
  to: string,
  opts: { spared?: string | undefined; signal?: AbortSignal } = {},
): Promise<void> {
  const { spared, signal } = opts;
  const limit = String(MAX_IMPORT_BYTES / 2 ** 20);
  const args = ["replicate", from, to, limit, ...(spared === undefined ? [] : [spared])];
  await new Promise<void>((resolve, reject) => {
    execFile(guestBinary(), args, { env: {}, ...(signal && { signal }) }, (error, _, stderr) => {
      if (error === null) resolve();
      else if (typeof error.code === "number") reject(archiveError(error.code, stderr));
      else reject(toSandboxError(error, { operation: "fork" }));
    });
  });
}
