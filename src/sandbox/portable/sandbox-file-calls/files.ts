import { SandboxError } from "../../../../contracts/errors.js";
import type { DirectoryEntry, FileContent, FileStat } from "../../../../contracts/types.js";
import { invalidArgument } from "../../../util/schema.js";
import { type FileUpload, NEW_FILE_MODE } from "../../types.js";
import type { OpenSandboxState } from "../open-sandbox-state.js";
import { resolveInside } from "../sandbox-path.js";
import { checkBytes, checkUploads, streamIn, toBytes } from "./file-options.js";
import { writeStream } from "./file-streams.js";

/** How many entries are described at the same time where the driver describes only one at a time. */
const AT_ONCE = 32;

/** Writes several files; if one of them is invalid, none is written. */
export async function uploadFiles(
  state: OpenSandboxState,
  files: readonly FileUpload[],
  signal: AbortSignal,
): Promise<void> {
  checkUploads(files);
  if (files.length === 0) return;
  const resolved = files.map(({ path, content, mode }, index) => ({
    path: resolveInside(state, path, `files[${index}].path`),
    content: toBytes(content),
    mode,
  }));
  await state.files.write(resolved, { signal });
}

/** Writes one file. */
export async function writeFile(
  state: OpenSandboxState,
  path: string,
  content: FileContent,
  opts: { mode?: number },
  signal: AbortSignal,
): Promise<void> {
  const source = streamIn(content, "content");
  const file = { path: resolveInside(state, path, "path"), mode: opts.mode };
  if (source !== undefined) await writeStream(state, { ...file, source }, signal);
  else await state.files.write([{ ...file, content: toBytes(content as string | Uint8Array) }], { signal });
}

/** Writes the files of a record, name by name. */
export async function writeFiles(
  state: OpenSandboxState,
  files: Readonly<Record<string, string | Uint8Array>>,
  signal: AbortSignal,
): Promise<void> {
  if (typeof files !== "object" || files === null || Array.isArray(files)) {
    throw invalidArgument("files", "an object of path and content", files);
  }
  await uploadFiles(
    state,
    Object.entries(files).map(([path, content]) => ({ path, content })),
    signal,
  );
}

/** Adds to a file. */
export async function appendFile(
  state: OpenSandboxState,
  path: string,
  content: string | Uint8Array,
  opts: { mode?: number },
  signal: AbortSignal,
): Promise<void> {
  checkBytes(content, "content");
  const file = { path: resolveInside(state, path, "path"), mode: opts.mode ?? NEW_FILE_MODE };
  if (state.files.append === undefined) throw unsupported(state, "appendFile");
  await state.files.append({ ...file, content: toBytes(content) }, { signal });
}

/** Reads a file as exact bytes; null if it does not exist. */
export async function readBytes(
  state: OpenSandboxState,
  path: string,
  signal: AbortSignal,
): Promise<Uint8Array | null> {
  const bytes = await state.files.read(resolveInside(state, path, "path"), { signal });
  return bytes === null ? null : new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Reads a file as UTF-8; null if it does not exist. */
export async function readFile(state: OpenSandboxState, path: string, signal: AbortSignal): Promise<string | null> {
  const bytes = await state.files.read(resolveInside(state, path, "path"), { signal });
  return bytes === null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

/** Describes what a path is, or what a link leads to; null if that does not exist. */
export async function stat(
  state: OpenSandboxState,
  path: string,
  opts: { follow?: boolean },
  signal: AbortSignal,
): Promise<FileStat | null> {
  const resolved = resolveInside(state, path, "path");
  if (opts.follow !== true) return await state.files.stat(resolved, { signal });
  if (state.files.statTarget !== undefined) return await state.files.statTarget(resolved, { signal });
  const found = await state.files.stat(resolved, { signal });
  if (found?.type === "symlink") throw unsupported(state, "way to follow a link");
  return found;
}

/** Lists the names in a directory, sorted. */
export async function listDirectory(state: OpenSandboxState, path: string, signal: AbortSignal): Promise<string[]> {
  return (await state.files.list(resolveInside(state, path, "path"), { signal })).toSorted();
}

/** Lists what is in a directory, sorted by name. */
export async function listDetails(
  state: OpenSandboxState,
  path: string,
  signal: AbortSignal,
): Promise<DirectoryEntry[]> {
  const resolved = resolveInside(state, path, "path");
  const entries = await (state.files.listDetails?.(resolved, { signal }) ?? describeEach(state, resolved, signal));
  return entries.sort((one, other) => (one.name < other.name ? -1 : 1));
}

async function describeEach({ files }: OpenSandboxState, path: string, signal: AbortSignal): Promise<DirectoryEntry[]> {
  const entries: DirectoryEntry[] = [];
  const names = await files.list(path, { signal });
  for (let at = 0; at < names.length; at += AT_ONCE) {
    signal.throwIfAborted();
    const batch = names.slice(at, at + AT_ONCE).map(async (name) => {
      const found = await files.stat(`${path}/${name}`, { signal });
      // It may have gone since.
      if (found !== null) entries.push({ name, ...found });
    });
    await Promise.all(batch);
  }
  return entries;
}

/** Deletes one file; returns whether there was one. */
export async function deleteFile(state: OpenSandboxState, path: string, signal: AbortSignal): Promise<boolean> {
  return await state.files.remove(resolveInside(state, path, "path"), { recursive: false, signal });
}

/** Removes a file, a link or a directory; returns whether there was one. */
export async function remove(
  state: OpenSandboxState,
  path: string,
  opts: { recursive?: boolean },
  signal: AbortSignal,
): Promise<boolean> {
  const { driver, files } = state;
  const resolved = resolveInside(state, path, "path");
  assertNotWorkDir(state, resolved, "path", "remove what is in it instead");
  const recursive = opts.recursive === true;
  try {
    return await files.remove(resolved, { recursive, signal });
  } catch (error) {
    if (recursive || !(error instanceof SandboxError) || error.code !== "not_regular_file") throw error;
  }
  signal.throwIfAborted();
  const hint = "pass { recursive: true } to remove a directory with everything in it";
  if (files.removeDirectory === undefined) {
    throw new SandboxError("unsupported", `The ${driver.backend} backend removes directories only as a whole`, {
      hint,
    });
  }
  try {
    return await files.removeDirectory(resolved, { signal });
  } catch (error) {
    if (!(error instanceof SandboxError) || error.code !== "conflict") throw error;
    throw new SandboxError("conflict", error.message, { cause: error, retryable: false, hint });
  }
}

/** Renames or moves a file, a link or a directory. */
export async function rename(state: OpenSandboxState, from: string, to: string, signal: AbortSignal): Promise<void> {
  const [source, target] = resolveBoth(state, from, to);
  if (source !== target) await state.files.rename(source, target, { signal });
  else if ((await state.files.stat(source, { signal })) === null) {
    throw new SandboxError("not_found", `${source} does not exist`);
  }
}

/** Copies a file, a link or a directory. */
export async function copy(
  state: OpenSandboxState,
  from: string,
  to: string,
  opts: { recursive?: boolean },
  signal: AbortSignal,
): Promise<void> {
  const [source, target] = resolveBoth(state, from, to);
  if (source === target) throw invalidArgument("to", "another path than from", to);
  if (state.files.copy === undefined) throw unsupported(state, "copy");
  const recursive = opts.recursive === true;
  try {
    await state.files.copy(source, target, { recursive, signal });
  } catch (error) {
    if (recursive || !(error instanceof SandboxError) || error.code !== "not_regular_file") throw error;
    const found = await state.files.stat(source, { signal }).catch(() => null);
    if (found?.type !== "directory") throw error;
    const hint = "pass { recursive: true } to copy a directory";
    throw new SandboxError(error.code, error.message, { cause: error, hint });
  }
}

/** Makes a directory and its parents. */
export async function makeDirectory(state: OpenSandboxState, path: string, signal: AbortSignal): Promise<void> {
  await state.files.makeDirectory(resolveInside(state, path, "path"), { signal });
}

/** Sets where relative paths and commands start. */
export async function setWorkdir(state: OpenSandboxState, path: string, signal: AbortSignal): Promise<void> {
  const resolved = resolveInside(state, path, "path");
  const found = await (state.files.statTarget?.(resolved, { signal }) ?? state.files.stat(resolved, { signal }));
  if (found === null) throw new SandboxError("not_found", `There is no directory ${resolved}`);
  // Listing follows the link but stays confined, and fails if it doesn't lead to a directory.
  if (found.type === "symlink") await state.files.list(resolved, { signal });
  else if (found.type !== "directory") {
    throw new SandboxError("invalid_path", `The path ${resolved} is not a directory but a ${found.type}`);
  }
  signal.throwIfAborted();
  state.cwd = resolved;
}

function resolveBoth(state: OpenSandboxState, from: string, to: string): [string, string] {
  const source = resolveInside(state, from, "from");
  const target = resolveInside(state, to, "to");
  assertNotWorkDir(state, source, "from", "name a path inside it");
  assertNotWorkDir(state, target, "to", "name a path inside it");
  if (!target.startsWith(`${source}/`)) return [source, target];
  throw new SandboxError("invalid_argument", `Invalid to: ${target} is inside ${source}`, {
    hint: "a directory can't be put into itself: choose a path beside it",
  });
}

function assertNotWorkDir({ driver }: OpenSandboxState, path: string, name: string, hint: string): void {
  const { workDir } = driver;
  if (path !== workDir && !workDir.startsWith(path === "/" ? path : `${path}/`)) return;
  const what = path === workDir ? "is the work directory itself" : `contains the work directory ${workDir}`;
  throw new SandboxError("invalid_argument", `Invalid ${name}: ${path} ${what}`, { hint });
}

function unsupported({ driver }: OpenSandboxState, what: string): SandboxError {
  return new SandboxError("unsupported", `The ${driver.backend} backend has no ${what}`);
}
