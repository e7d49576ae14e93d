import { lstat, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import type { Sandbox } from "../../sandbox/types.js";
import { toInertLine } from "../../util/inert-text.js";
import { findSandboxId } from "../find-id.js";
import type { Invocation } from "../invocation.js";
import { withKept } from "../kept-sandbox.js";

/** `glovebox export <id> <path inside> <host path>`. */
export async function run(invocation: Invocation): Promise<number> {
  const { operands, flags, screen } = invocation;
  const [given = "", inside = "", host = ""] = operands;
  const id = await findSandboxId(given);
  const path = await withKept(invocation, id, `copying ${inside} out`, async (sandbox) => {
    const file = await fileOf(sandbox, inside);
    return file === undefined ? await sandbox.exportDirectory(inside, host) : await place(file, host);
  });
  const shown = screen.stdout.isTTY === true ? toInertLine(path) : path;
  await (flags.has("json") ? screen.printJson({ sandbox: id, path }) : screen.print(`${shown}\n`));
  return 0;
}

/** The content and the mode of a file; undefined if it is a directory or does not exist. */
async function fileOf(sandbox: Sandbox, path: string): Promise<{ content: Uint8Array; mode: number } | undefined> {
  const found = await sandbox.stat(path);
  if (found === null || found.type === "directory") return undefined;
  try {
    const content = await sandbox.readBytes(path);
    return content === null ? undefined : { content, mode: found.type === "file" ? found.mode & 0o777 : 0o644 };
  } catch (error) {
    // The link may lead to a directory.
    if (found.type === "symlink" && error instanceof SandboxError && error.code === "not_regular_file")
      return undefined;
    throw error;
  }
}

/** Writes a new file; never overwrites one of the user's. */
async function place({ content, mode }: { content: Uint8Array; mode: number }, host: string): Promise<string> {
  const path = resolve(host);
  if ((await lstat(path).catch(() => undefined)) !== undefined) throw taken(path);
  await writeFile(path, content, { flag: "wx", mode }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "EEXIST") throw taken(path);
    if (error.code !== "ENOENT") throw error;
    throw new SandboxError("not_found", `The directory of ${path} does not exist`, { cause: error });
  });
  return path;
}

function taken(path: string): SandboxError {
  const hint = "choose a new name";
  return new SandboxError("conflict", `The host path ${path} exists already`, { retryable: false, hint });
}
