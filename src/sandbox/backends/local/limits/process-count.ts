import { release } from "node:os";

/** How many processes and threads a confined sandbox may have unless `limits.pids` is set. */
export const DEFAULT_PIDS = 4096;

/**
 * Whether the kernel counts the processes of a jail alone, so that RLIMIT_NPROC bounds the sandbox and nothing else. Since Linux 5.14 it counts per
 * user namespace; before, only a sandbox that root opens has a user of its own.
 */
export function countsProcesses(linux: string = release(), isRoot: boolean = process.getuid?.() === 0): boolean {
  const [major = 0, minor = 0] = linux.split(".").map(Number);
  return isRoot || major > 5 || (major === 5 && minor >= 14);
}
