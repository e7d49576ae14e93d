import { SandboxError } from "../../../contracts/errors.js";
import type { FileStat } from "../../../contracts/types.js";
import { invalidArgument } from "../../util/schema.js";
import type { FileUpload } from "../types.js";
import type { OpenSandboxState } from "./open-sandbox-state.js";
import { resolveInside } from "./sandbox-path.js";
import { checkContent, checkUploads, checkWriteOptions } from "./validate.js";

const DEFAULT_MODE = 0o644;

/** Writes several files; if one of them is invalid, none is written. */
export async function uploadFiles(state: OpenSandboxState, files: readonly FileUpload[]): Promise<void> {
  checkUploads(files);
  if (files.length === 0) return;
  await state.driver.write(
    files.map(({ path, content, mode }, index) => ({
      path: resolveInside(state, path, `files[${index}].path`),
      content: toBytes(content),
      mode: mode ?? DEFAULT_MODE,
    })),
  );
}

/** Writes one file. */
export async function writeFile(
  state: OpenSandboxState,
  path: string,
  content: string | Uint8Array,
  opts: { mode?: number },
): Promise<void> {
  checkContent(content, "content");
  checkWriteOptions(opts);
  const resolved = resolveInside(state, path, "path");
  await state.driver.write([{ path: resolved, content: toBytes(content), mode: opts.mode ?? DEFAULT_MODE }]);
}

/** Writes the files of a record, name by name. */
export async function writeFiles(
  state: OpenSandboxState,
  files: Readonly<Record<string, string | Uint8Array>>,
): Promise<void> {
  if (typeof files !== "object" || files === null || Array.isArray(files)) {
    throw invalidArgument("files", "an object of path and content", files);
  }
  await uploadFiles(
    state,
    Object.entries(files).map(([path, content]) => ({ path, content })),
  );
}

/** Reads a file as exact bytes; null if it does not exist. */
export async function readBytes(state: OpenSandboxState, path: string): Promise<Uint8Array | null> {
  const bytes = await state.driver.read(resolveInside(state, path, "path"));
  return bytes === null ? null : new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Reads a file as UTF-8; null if it does not exist. */
export async function readFile(state: OpenSandboxState, path: string): Promise<string | null> {
  const bytes = await state.driver.read(resolveInside(state, path, "path"));
  return bytes === null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

/** Describes what a path is; null if it does not exist. */
export async function stat(state: OpenSandboxState, path: string): Promise<FileStat | null> {
  return state.driver.stat(resolveInside(state, path, "path"));
}

/** Lists the names in a directory, sorted. */
export async function listDirectory(state: OpenSandboxState, path: string): Promise<string[]> {
  return (await state.driver.list(resolveInside(state, path, "path"))).toSorted();
}

/** Deletes one file; returns whether there was one. */
export async function deleteFile(state: OpenSandboxState, path: string): Promise<boolean> {
  return state.driver.remove(resolveInside(state, path, "path"), { recursive: false });
}

/** Makes a directory and its parents. */
export async function makeDirectory(state: OpenSandboxState, path: string): Promise<void> {
  await state.driver.makeDirectory(resolveInside(state, path, "path"));
}

/** Sets where relative paths and commands start. */
export async function setWorkdir(state: OpenSandboxState, path: string): Promise<void> {
  const resolved = resolveInside(state, path, "path");
  const found = await state.driver.stat(resolved);
  if (found === null) throw new SandboxError("not_found", `There is no directory ${resolved}`);
  // Listing follows the link but stays confined, and fails if it doesn't lead to a directory.
  if (found.type === "symlink") await state.driver.list(resolved);
  else if (found.type !== "directory") {
    throw new SandboxError("invalid_path", `The path ${resolved} is not a directory but a ${found.type}`);
  }
  state.cwd = resolved;
}

function toBytes(content: string | Uint8Array): Uint8Array {
  return typeof content === "string" ? Buffer.from(content) : content;
}
