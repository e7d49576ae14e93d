import { chmodSync, readdirSync, type Stats, statSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { makeDirectories } from "../util/make-directories.js";
import { assertSandboxId } from "./sandbox-id.js";

/** All that there is in the home. */
const PARTS = [
  "bases",
  "clones",
  "conformance",
  "etc",
  "locks",
  "runs",
  "sandboxes",
  "snapshots",
  "trust",
  "views",
] as const;

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
export function privateSubdirectory(name: (typeof PARTS)[number]): string {
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
    const path = resolve(chosen);
    if (!isAbsolute(chosen)) throw notUsable("GLOVEBOX_HOME", chosen, "must be an absolute path");
    if (path === "/" || path === homedir())
      throw notUsable("GLOVEBOX_HOME", chosen, "it holds more than Glovebox's own");
    return path;
  }
  const state = process.env["XDG_STATE_HOME"];
  // The XDG base directory rules say that a relative value is to be ignored.
  if (state !== undefined && isAbsolute(state)) return join(state, "glovebox");
  const home = homedir();
  if (isAbsolute(home)) return join(home, ".local", "state", "glovebox");
  throw notUsable("HOME", home, "must be an absolute path");
}

const OWN_DIRECTORY = "Set GLOVEBOX_HOME to a directory of your own.";

function notUsable(name: string, value: string, why: string): SandboxError {
  return new SandboxError("invalid_argument", `Invalid ${name} "${value}" — ${why}`, { hint: OWN_DIRECTORY });
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
      makeDirectories(path, 0o700);
      found = statSync(path);
    }
    const self = process.geteuid?.();
    if (self === undefined) return;
    if (found.uid !== self) {
      throw new SandboxError("permission_denied", `${path} belongs to user ${found.uid}, not to user ${self}`, {
        hint: OWN_DIRECTORY,
      });
    }
    if ((found.mode & 0o077) === 0) return;
    if (path === homePath() && readdirSync(path).some((name) => !PARTS.some((part) => part === name))) {
      throw new SandboxError("invalid_argument", `${path} is open to other users, and holds more than Glovebox's own`, {
        hint: OWN_DIRECTORY,
      });
    }
    chmodSync(path, 0o700);
  } catch (error) {
    const isFull = toSandboxError(error).code === "no_space";
    throw toSandboxError(error, { operation: "home", ...(!isFull && { hint: OWN_DIRECTORY }) });
  }
}
