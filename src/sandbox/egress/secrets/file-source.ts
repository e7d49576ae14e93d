import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { SandboxError } from "../../../../contracts/errors.js";
import { isWithin, realPathOf, repositoryOf } from "../../../util/repository-of.js";
import { type FetchedValue, MAX_VALUE_BYTES, withoutLineEnd } from "./fetched-value.js";

/**
 * Reads the value of a secret from a file. Refused are files that others can read or write, files of a repository, also through a link, and files
 * below one of the `visible` paths, which the sandbox sees.
 */
export async function fetchFromFile(name: string, path: string, visible: readonly string[]): Promise<FetchedValue> {
  const refuse = (why: string, hint?: string, cause?: unknown): SandboxError =>
    new SandboxError("unauthenticated", `Secret ${name} can't be read from ${path}: ${why}`, { hint, cause });
  const repository = repositoryOf(path);
  if (repository !== undefined) throw refuse(`it is in the repository ${repository}`, "move it out of the repository");
  const real = realPathOf(path);
  const shown = visible.find((place) => isWithin(real, realPathOf(place)));
  if (shown !== undefined) throw refuse(`the sandbox sees ${shown}`, "move it to a place that is not mounted");
  let file: FileHandle;
  try {
    // It must still be the file that was looked at, and opening a pipe must not wait.
    file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code = "it can't be opened" } = error as NodeJS.ErrnoException;
    throw refuse(code, code === "ENOENT" ? `write the value to ${path}, and chmod 600` : undefined, error);
  }
  try {
    const stat = await file.stat();
    const { uid, mode, size } = stat;
    const isOwn = uid === process.getuid?.();
    if (!stat.isFile()) throw refuse("it is not a regular file");
    if (!isOwn && uid !== 0) throw refuse("it belongs to another user");
    if ((mode & 0o022) !== 0) throw refuse("others can write to it", `chmod 600 ${path}`);
    // What root lets you read, you could not make private.
    if ((mode & 0o044) !== 0 && isOwn) throw refuse("others can read it", `chmod 600 ${path}`);
    if (size > MAX_VALUE_BYTES) throw refuse(`it has more than ${MAX_VALUE_BYTES} bytes`);
    const value = withoutLineEnd(await file.readFile("utf8"));
    if (value === "") throw refuse("it is empty");
    return { value };
  } finally {
    await file.close();
  }
}
