import { closeSync, constants, fstatSync, openSync, writeSync } from "node:fs";
import { SandboxError } from "../../../../contracts/errors.js";
import type { TrafficLog } from "./traffic.js";

/** Bytes about what is over that wait until the file can be written again. */
const MAX_WAITING = 1 << 20;

/** Opens an audit log to add lines to it. A link, or anything but a file, is `invalid_argument`. */
export function openAuditFile(path: string): number {
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;
  let file: number;
  try {
    // Without waiting: opening a FIFO that nobody reads would take forever.
    file = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600);
  } catch (error) {
    const { code = "unknown" } = error as NodeJS.ErrnoException;
    const why = code === "ELOOP" ? "it is a symbolic link" : code;
    throw new SandboxError("invalid_argument", `Option audit: the file "${path}" can't be opened: ${why}`, {
      cause: error,
      hint: "give the path of a file in a directory that you can write to",
    });
  }
  if (fstatSync(file).isFile()) return file;
  closeSync(file);
  throw new SandboxError("invalid_argument", `Option audit: "${path}" is not a regular file`);
}

/** Throws if an audit log can't be written at this path. */
export function checkAuditFile(path: string): void {
  closeSync(openAuditFile(path));
}

/** Adds the events of a sandbox to a file. Throws for a line that can't be written; `onFailure` gets the first failure of a row. */
export function createAuditLog(path: string, onFailure: (message: string) => void): TrafficLog {
  const file = openAuditFile(path);
  /** What the file needs before the next line: the rest of a torn one, and what was over while it could not be written. */
  let waiting: Buffer = Buffer.alloc(0);
  let hasFailed = false;
  const drain = (): void => {
    while (waiting.length > 0) waiting = waiting.subarray(writeSync(file, waiting));
  };
  return {
    write(event) {
      const line = Buffer.from(`${JSON.stringify(event)}\n`);
      const isOver = event.event === "close" || event.event === "blocked";
      let isNext = false;
      try {
        drain();
        [waiting, isNext] = [line, true];
        drain();
        hasFailed = false;
      } catch (error) {
        if (!isNext && isOver && waiting.length < MAX_WAITING) waiting = Buffer.concat([waiting, line]);
        // What starts is refused now, so it must not be in the log later.
        if (isNext && !isOver && waiting.length === line.length) waiting = Buffer.alloc(0);
        const { code = "unknown" } = error as NodeJS.ErrnoException;
        if (!hasFailed) onFailure(`the audit log ${path} can't be written (${code}): nothing passes until it can`);
        hasFailed = true;
        throw error;
      }
    },
    close() {
      try {
        drain();
      } finally {
        closeSync(file);
      }
    },
  };
}
