import { accessSync, chmodSync, constants, readdirSync, type Stats, statSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { makeDirectories } from "../util/make-directories.js";
import { assertSandboxId } from "./sandbox-id.js";
import { OWN_DIRECTORY, temporaryHome } from "./temporary-home.js";
import { userHome } from "./user-home.js";

/** Everything that belongs in the home. */
const PARTS = [
  "bases",
  "clones",
  "compiled",
  "conformance",
  "etc",
  "locks",
  "names",
  "runs",
  "sandboxes",
  "snapshots",
  "trust",
  "views",
] as const;

/** The directory with Glovebox's records, locks and snapshots. Created if absent, and private to this user. */
export function gloveboxHome(): string {
  const home = homePath();
  ensurePrivateDirectory(home);
  return home;
}

/** The host directory of one sandbox, with its record and everything that must be removed with it. */
export function runtimeDir(id: string): string {
  assertSandboxId(id);
  return join(sandboxesDir(), id);
}

/** The parent of every runtime directory. */
export function sandboxesDir(): string {
  return privateSubdirectory("sandboxes");
}

/** A directory of this name below the home, created if absent. */
export function privateSubdirectory(name: (typeof PARTS)[number]): string {
  const home = homePath();
  const path = join(home, name);
  // While it exists, the home is the one that was checked, and only this user could have opened it to others since.
  const found = seen.has(path) ? lookAt(path) : undefined;
  if (found === undefined) ensurePrivateDirectory(home);
  ensurePrivateDirectory(path, found);
  seen.add(path);
  return path;
}

/** Subdirectories of a home that was checked. */
const seen = new Set<string>();

function homePath(): string {
  return namedHome() ?? usualHome() ?? temporaryHome();
}

/** Whether the home is a temporary directory, because this user has no home directory to write to. */
export function isHomeTemporary(): boolean {
  return namedHome() === undefined && usualHome() === undefined;
}

/** The home that a variable names. */
function namedHome(): string | undefined {
  const chosen = process.env["GLOVEBOX_HOME"];
  if (chosen !== undefined && chosen !== "") {
    const path = resolve(chosen);
    if (!isAbsolute(chosen)) throw notUsable("GLOVEBOX_HOME", chosen, "must be an absolute path");
    if (path === "/" || path === userHome())
      throw notUsable("GLOVEBOX_HOME", chosen, "it contains files that are not Glovebox's");
    return path;
  }
  const state = process.env["XDG_STATE_HOME"];
  // The XDG base directory specification says to ignore a relative value.
  return state !== undefined && isAbsolute(state) ? join(state, "glovebox") : undefined;
}

/** The home below the user's home directory; undefined where this user can't write there. */
function usualHome(): string | undefined {
  const home = userHome();
  if (!isAbsolute(home)) throw notUsable("HOME", home, "must be an absolute path");
  const path = join(home, ".local", "state", "glovebox");
  if (usual.path !== path) Object.assign(usual, { path, isUsable: canMake(path) });
  return usual.isUsable ? path : undefined;
}

/** What was found out about the place below a home directory. */
const usual = { path: "", isUsable: true };

/** Whether a directory is there, or this user may make it. */
function canMake(path: string): boolean {
  const parent = dirname(path);
  if (lookAt(path) !== undefined) return true;
  if (lookAt(parent) === undefined) return parent !== path && canMake(parent);
  try {
    accessSync(parent, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

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
      throw new SandboxError(
        "invalid_argument",
        `${path} is open to other users and contains files that are not Glovebox's`,
        {
          hint: OWN_DIRECTORY,
        },
      );
    }
    chmodSync(path, 0o700);
  } catch (error) {
    const isFull = toSandboxError(error).code === "no_space";
    throw toSandboxError(error, { operation: "home", ...(!isFull && { hint: OWN_DIRECTORY }) });
  }
}
