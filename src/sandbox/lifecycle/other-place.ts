import { SandboxError } from "../../../contracts/errors.js";

/** The error for a snapshot of a whole machine whose work directory is at another place than the sandbox's. */
export function otherPlace(snapshot: string, workDir: string): SandboxError {
  return new SandboxError("conflict", `The snapshot "${snapshot}" has its files in ${workDir}`, {
    retryable: false,
    hint: `open a sandbox with workDir: "${workDir}"`,
  });
}
