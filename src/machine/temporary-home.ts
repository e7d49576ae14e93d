import { lstatSync, mkdirSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { temporaryDirectory } from "./temporary-directory.js";

/** What to do where a directory can't be the home. */
export const OWN_DIRECTORY = "Set GLOVEBOX_HOME to a new directory that only you can access.";

const STICKY = 0o1000;
/** What a user namespace shows for owners that it doesn't map, such as the machine's root. */
const UNMAPPED = 65_534;

/**
 * A private directory for a user without a home directory, the same for all processes of this user. Everybody may write next to it, so it is looked at
 * each time: it must be a directory, not a link, and nobody else's or open to anybody else.
 */
export function temporaryHome(): string {
  const parent = temporaryDirectory();
  const path = join(parent, `glovebox-${process.geteuid?.() ?? "home"}`);
  const found = lstatSync(path, { throwIfNoEntry: false }) ?? make(parent, path);
  if (!found.isDirectory() || !isOwn(found)) throw refuse(`${path} is not a directory of this user`);
  if (process.geteuid !== undefined && (found.mode & 0o077) !== 0) throw refuse(`${path} is open to other users`);
  return path;
}

function make(parent: string, path: string): Stats {
  const { uid, mode } = statSync(parent);
  const isForeign = process.geteuid !== undefined && ![0, process.geteuid(), UNMAPPED].includes(uid);
  if (isForeign || (process.geteuid !== undefined && (mode & 0o022) !== 0 && (mode & STICKY) === 0)) {
    throw refuse(`in ${parent} other users can replace what is yours: it is not sticky, or belongs to user ${uid}`);
  }
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process of this user may have been faster.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST")
      throw toSandboxError(error, { operation: "home", hint: OWN_DIRECTORY });
  }
  return lstatSync(path);
}

function isOwn({ uid }: Stats): boolean {
  return process.geteuid === undefined || uid === process.geteuid();
}

function refuse(message: string): SandboxError {
  return new SandboxError("permission_denied", message, { hint: OWN_DIRECTORY });
}
