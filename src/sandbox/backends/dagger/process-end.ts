import type { DriverExit, DriverProcess } from "../../types.js";

/** A process that ends as another promise says. */
export function endingAs(
  process: DriverProcess,
  ended: Promise<DriverExit>,
  onKill?: (signal: string) => void,
): DriverProcess {
  return {
    stdout: process.stdout,
    stderr: process.stderr,
    writeStdin: (chunk) => process.writeStdin(chunk),
    closeStdin: () => process.closeStdin(),
    kill: (signal) => {
      onKill?.(signal);
      return process.kill(signal);
    },
    wait: () => ended,
    ...(process.resize && { resize: (cols: number, rows: number) => process.resize?.(cols, rows) as Promise<void> }),
  };
}
