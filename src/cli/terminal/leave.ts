import { isatty } from "node:tty";

const terminals = [0, 1, 2].filter((fd) => isatty(fd));

/**
 * Ends this program. Node gives terminals back as it found them, and crashes where one is gone by then; so what the system
 * sends to whoever loses its terminal ends it there, which a shell shows as 129.
 */
export function leave(code: number): never {
  if (terminals.every((fd) => isatty(fd))) process.exit(code);
  process.emit("exit", code);
  process.removeAllListeners("SIGHUP");
  process.kill(process.pid, "SIGHUP");
  process.exit(code);
}
