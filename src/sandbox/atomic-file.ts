import { randomBytes } from "node:crypto";
import { open, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { failpoint } from "./failpoint.js";

/** Replaces a file so that a reader, or a crash at any moment, finds the old content or the new, and nothing else. */
export async function writeFileAtomic(path: string, content: string, mode = 0o600): Promise<void> {
  const temporary = `${path}.${process.pid}-${randomBytes(6).toString("hex")}.tmp`;
  try {
    await writeFileDurable(temporary, content, mode);
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  await syncPath(dirname(path));
}

/** Writes a new file, and returns once its content would survive a power loss; its name may need `syncPath`. */
export async function writeFileDurable(path: string, content: string, mode = 0o600): Promise<void> {
  const handle = await open(path, "wx", mode);
  try {
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await failpoint("file.written");
}

/** Makes the names in a directory, or the content of a file, survive a power loss, where the system can do that. */
export async function syncPath(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } catch (error) {
    // Some file systems cannot sync a directory; there the rename itself has to do.
    if ((error as NodeJS.ErrnoException).code !== "EINVAL") throw error;
  } finally {
    await handle.close();
  }
}
