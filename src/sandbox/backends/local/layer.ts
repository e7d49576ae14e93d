import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { toSandboxError } from "../../../../contracts/errors.js";

const run = promisify(execFile);

/** Makes the directories of a private layer, with a copy of another layer if one is named. */
export async function makeLayer(dir: string, from?: string): Promise<string> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  mkdirSync(join(dir, "work"), { mode: 0o700 });
  if (from === undefined) {
    mkdirSync(join(dir, "upper"), { mode: 0o700 });
    return dir;
  }
  try {
    // Not fs.cp: deleted files are device nodes in a layer, and renames are extended attributes.
    await run("/bin/cp", ["--archive", "--reflink=auto", "--", join(from, "upper"), dir], { env: {} });
  } catch (error) {
    throw toSandboxError(error, { operation: "fork" });
  }
  return dir;
}
