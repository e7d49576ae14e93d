import { posix } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import type { Sandbox } from "../../sandbox/types.js";

const TIMEOUT = 60_000;
const WRITE = 'umask 077; mkdir -p -- "$HOME/$1" && cat > "$HOME/$2"';

/** Writes files below HOME in a sandbox, which the calls for files of the work directory don't reach. */
export async function writeHomeFiles(
  sandbox: Sandbox,
  files: Readonly<Record<string, string | Uint8Array>> = {},
  signal?: AbortSignal,
): Promise<void> {
  for (const [path, stdin] of Object.entries(files)) {
    const argv = ["/bin/sh", "-c", WRITE, "sh", posix.dirname(path), path];
    const { exitCode, stderr } = await sandbox.exec({ argv, stdin, timeout: TIMEOUT, ...(signal && { signal }) });
    if (exitCode === 0) continue;
    throw new SandboxError("unavailable", `~/${path} cannot be written in the sandbox: ${stderr.trim()}`);
  }
}
