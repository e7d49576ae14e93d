import { execFile } from "node:child_process";
import { toSandboxError } from "../../../../contracts/errors.js";
import { archiveError, guestBinary } from "../../guest.js";
import { MAX_IMPORT_BYTES } from "../../types.js";

/** Makes the directory of a sandbox that has run nothing yet equal to that of another, except for the name `spared` at the top. */
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
