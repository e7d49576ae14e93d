import { closeSync, constants, fstatSync, lstatSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "../../contracts/errors.js";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;

/** An open directory. Names are looked up in this directory itself, even if its path leads elsewhere by then. */
export interface OpenDirectory extends Disposable {
  /** For messages; never open a file by it. */
  readonly path: string;
  /** The path by which to open or make `name`, which must be a single name. */
  at(name: string): string;
  close(): void;
}

/**
 * Opens a directory below `root`, one name at a time. A symbolic link on the way is `path_confinement`, because somebody
 * else may have put it there. The root itself may be a link. With `make`, missing directories are made with that mode;
 * without it, a missing one is `not_found`.
 */
export function openBeneath(root: string, names: readonly string[], { make }: { make?: number } = {}): OpenDirectory {
  let here = openDirectory(root, root, 0);
  try {
    for (const name of names) {
      if (make !== undefined) makeOne(here.at(name), make);
      const next = enter(here, name);
      here.close();
      here = next;
    }
    return here;
  } catch (error) {
    here.close();
    throw error;
  }
}

/** Reads a regular file of at most `maxBytes` in an open directory, without following a link. */
export function readIn(directory: OpenDirectory, name: string, maxBytes: number = Number.MAX_SAFE_INTEGER): Buffer {
  try {
    return readRegularFile(directory.at(name), maxBytes, join(directory.path, name));
  } catch (error) {
    throw failure(error, directory, name);
  }
}

/**
 * Reads a regular file of at most so many bytes. A link in its place is not followed (`ELOOP`), a pipe is not waited at. `shown` is its path
 * in errors.
 */
export function readRegularFile(path: string, maxBytes: number, shown: string = path): Buffer {
  const file = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const found = fstatSync(file);
    if (!found.isFile()) throw new SandboxError("not_regular_file", `${shown} is not a regular file`);
    if (found.size > maxBytes) throw new SandboxError("limit_exceeded", `${shown} is larger than ${maxBytes} bytes`);
    return readFileSync(file);
  } finally {
    closeSync(file);
  }
}

/** Opens a file in an open directory without following a link; a new one is private to this user. */
export function openIn(directory: OpenDirectory, name: string, flags: number): number {
  try {
    return openSync(directory.at(name), flags | O_NOFOLLOW | O_NONBLOCK, 0o600);
  } catch (error) {
    throw failure(error, directory, name);
  }
}

function enter(parent: OpenDirectory, name: string): OpenDirectory {
  try {
    return openDirectory(parent.at(name), join(parent.path, name), O_NOFOLLOW);
  } catch (error) {
    throw failure(error, parent, name);
  }
}

function openDirectory(source: string, path: string, flags: number): OpenDirectory {
  const fd = openSync(source, O_RDONLY | O_DIRECTORY | flags);
  let isOpen = true;
  const close = (): void => {
    if (isOpen) closeSync(fd);
    isOpen = false;
  };
  // Other systems can't name a directory by its descriptor; there, O_NOFOLLOW on each name has to do.
  const base = process.platform === "linux" ? `/proc/self/fd/${fd}` : path;
  return { path, at: (name) => join(base, single(name)), close, [Symbol.dispose]: close };
}

function single(name: string): string {
  if (name !== "" && name !== "." && name !== ".." && !/[/\0]/.test(name)) return name;
  throw new SandboxError("invalid_path", `${JSON.stringify(name)} is not a single name`);
}

function makeOne(path: string, mode: number): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

function failure(error: unknown, parent: OpenDirectory, name: string): unknown {
  const { code } = error as NodeJS.ErrnoException;
  const shown = join(parent.path, name);
  if (code === "ENXIO") return new SandboxError("not_regular_file", `${shown} is not a regular file`, { cause: error });
  if (code === "ENOENT") return new SandboxError("not_found", `${shown} does not exist`, { cause: error });
  if (code !== "ELOOP" && code !== "ENOTDIR" && code !== "EMLINK") return error;
  if (lstatSync(parent.at(name), { throwIfNoEntry: false })?.isSymbolicLink() !== true) {
    return new SandboxError("invalid_path", `${shown} is not a directory`, { cause: error });
  }
  return new SandboxError("path_confinement", `${shown} is a symbolic link, which Glovebox does not follow`, {
    cause: error,
    hint: "replace it with a real file or directory; a link in a repository can lead anywhere",
  });
}
