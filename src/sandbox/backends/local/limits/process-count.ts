import { release } from "node:os";
import { type Standing, standing } from "../../../../machine/standing.js";

/** How many processes and threads a confined sandbox may have unless `limits.pids` is set. */
export const DEFAULT_PIDS = 4096;

/**
 * Whether the kernel counts the processes of a jail alone, so that RLIMIT_NPROC bounds the sandbox and nothing else. Since Linux 5.14 it counts per
 * user namespace; before, only a sandbox that root opens has a user of its own. It never counts those of the machine's user 0.
 */
export function countsProcesses(linux: string = release(), who: Standing = standing()): boolean {
  const [major = 0, minor = 0] = linux.split(".").map(Number);
  if (who === "bare-root") return false;
  return who === "root" || major > 5 || (major === 5 && minor >= 14);
}
