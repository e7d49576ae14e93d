import type { Sandbox } from "../../contracts/sandbox.js";
import type { FileContent } from "../../contracts/types.js";

/** Writes a file as programs do: one that is there keeps its permissions, so that a script can still be run after an edit. */
export async function writeOver(
  sandbox: Sandbox,
  path: string,
  content: FileContent,
  call: { signal?: AbortSignal } = {},
): Promise<void> {
  // What is wrong with the path, the write reports.
  const found = await sandbox.stat(path, { ...call, follow: true }).catch(() => null);
  await sandbox.writeFile(path, content, { ...call, ...(found?.type === "file" && { mode: found.mode & 0o777 }) });
}
