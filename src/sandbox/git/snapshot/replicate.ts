import { execFile } from "node:child_process";
import { toSandboxError } from "../../../../contracts/errors.js";
import { archiveError, guestBinary } from "../../guest.js";
import { MAX_IMPORT_BYTES } from "../../types.js";

/**
 * Makes a directory of the host's, in which nothing of the inside runs yet, hold what another one holds that the inside could write: only what
 * differs is copied, and only bytes say what does. `spared` is a name at the top that stays as it is.
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
