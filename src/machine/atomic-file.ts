import { randomBytes } from "node:crypto";
import { closeSync, fchmodSync, fsync, openSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { attempt } from "../util/attempt.js";
import { failpoint } from "./failpoint.js";

// Only this call waits for the disk. The others are synchronous: handing them to another thread would take longer.
const forceToDisk = promisify(fsync);

/** Replaces a file so that a reader, or a crash at any moment, finds either the old content or the new. */
export async function writeFileAtomic(path: string, content: string, mode = 0o600): Promise<void> {
  const temporary = `${path}.${process.pid}-${randomBytes(6).toString("hex")}.tmp`;
  try {
    await writeFileDurable(temporary, content, mode);
    renameSync(temporary, path);
  } catch (error) {
    attempt(() => unlinkSync(temporary));
    throw error;
  }
  await syncPath(dirname(path));
}

/** Writes a new file and returns once its content would survive a power loss. Its name may still need `syncPath`. */
export async function writeFileDurable(path: string, content: string, mode = 0o600): Promise<void> {
  const fd = openSync(path, "wx", mode);
  try {
    // The mask of this process may take bits of others away.
    if ((mode & 0o077) !== 0) fchmodSync(fd, mode);
    writeFileSync(fd, content);
    await forceToDisk(fd);
  } finally {
    closeSync(fd);
  }
  await failpoint("file.written");
}

/** Makes the names in a directory, or the content of a file, survive a power loss, where the system supports it. */
export async function syncPath(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const fd = openSync(path, "r");
  try {
    await forceToDisk(fd);
  } catch (error) {
    // Some file systems can't sync a directory; there the rename must be enough.
    if ((error as NodeJS.ErrnoException).code !== "EINVAL") throw error;
  } finally {
    closeSync(fd);
  }
}
