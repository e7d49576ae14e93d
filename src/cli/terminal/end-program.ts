import { isatty } from "node:tty";

const terminals = [0, 1, 2].filter((fd) => isatty(fd));

/**
 * Ends this program. On exit Node restores the terminals, and crashes if one is gone. In that case end by SIGHUP, as any
 * program that loses its terminal does; a shell shows that as 129.
 */
export function endProgram(code: number): never {
  if (terminals.every((fd) => isatty(fd))) process.exit(code);
  process.emit("exit", code);
  process.removeAllListeners("SIGHUP");
  process.kill(process.pid, "SIGHUP");
  process.exit(code);
}
