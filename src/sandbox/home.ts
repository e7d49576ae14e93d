import { chmodSync, mkdirSync, type Stats, statSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { SandboxError, toSandboxError } from "./errors.js";
import { assertSandboxId } from "./sandbox-id.js";

/** The directory where Glovebox keeps its records, locks and snapshots; made when absent, private to this user. */
export function gloveboxHome(): string {
  const home = homePath();
  ensurePrivateDirectory(home);
  return home;
}

/** Where the host keeps what belongs to one sandbox: its record and what it must not lose sight of. */
export function runtimeDir(id: string): string {
  assertSandboxId(id);
  return join(sandboxesDir(), id);
}

/** The parent of every runtime directory. */
export function sandboxesDir(): string {
  return privateSubdirectory("sandboxes");
}

/** A directory of this name below the home, made when absent. */
export function privateSubdirectory(name: string): string {
  const home = homePath();
  const path = join(home, name);
  // As long as it is there, the home is the one that was looked at, and only this user could have opened it to others since.
  const found = seen.has(path) ? lookAt(path) : undefined;
  if (found === undefined) ensurePrivateDirectory(home);
  ensurePrivateDirectory(path, found);
  seen.add(path);
  return path;
}

/** The subdirectories of a home that was looked at. */
const seen = new Set<string>();

function homePath(): string {
  const chosen = process.env["GLOVEBOX_HOME"];
  if (chosen !== undefined && chosen !== "") {
    if (isAbsolute(chosen)) return chosen;
    throw new SandboxError("invalid_argument", `Invalid GLOVEBOX_HOME "${chosen}" — must be an absolute path`);
  }
  const state = process.env["XDG_STATE_HOME"];
  // The XDG base directory rules say that a relative value is to be ignored.
  const base = state !== undefined && isAbsolute(state) ? state : join(homedir(), ".local", "state");
  return join(base, "glovebox");
}

function lookAt(path: string): Stats | undefined {
  try {
    const found = statSync(path);
    return found.isDirectory() ? found : undefined;
  } catch {
    return undefined;
  }
}

function ensurePrivateDirectory(path: string, known?: Stats): void {
  try {
    let found = known ?? lookAt(path);
    if (found === undefined) {
      mkdirSync(path, { recursive: true, mode: 0o700 });
      found = statSync(path);
    }
    const self = process.geteuid?.();
    if (self === undefined) return;
    if (found.uid !== self) {
      throw new SandboxError("permission_denied", `${path} belongs to user ${found.uid}, not to user ${self}`, {
        hint: "Set GLOVEBOX_HOME to a directory of your own.",
      });
    }
    if ((found.mode & 0o077) !== 0) chmodSync(path, 0o700);
  } catch (error) {
    throw toSandboxError(error, { operation: "home" });
  }
}
