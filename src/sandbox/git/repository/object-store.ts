import { lstatSync, readdirSync, realpathSync } from "node:fs";
import { isAbsolute, join, sep } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import type { JailBind } from "../../jail.js";
import { INSIDE_OBJECTS } from "./inside-paths.js";
import { readUntrustedFile, unsafePart } from "./untrusted-file.js";

/** An object store that another one borrows from. */
export interface Alternate {
  /** The path in the file `alternates`: git looks there. */
  readonly path: string;
  /** Its real path. */
  readonly store: string;
}

/** An object store, with the stores that it borrowed from when the repository was opened. */
export interface ObjectStore {
  readonly objects: string;
  readonly alternates?: readonly Alternate[] | undefined;
}

const DEEPEST = 5;
const PART = /^([0-9a-f]{2}|info|pack)$/;
/** What an interrupted git leaves there. */
const LEFTOVER = /^(tmp_|maintenance\.lock$)/;

/**
 * The object stores that a repository borrows from, directly or not, each checked. A store outside the repository is refused unless it is
 * in `allowed`: everything in it would become visible in the sandbox.
 */
export function findAlternates(gitDir: string, allowed: readonly string[] = []): Alternate[] {
  const objects = join(gitDir, "objects");
  const named = new Set(allowed.map(realOf));
  const found = new Map<string, Alternate>();
  let level = [objects];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > DEEPEST) throw unsupported(objects, "its alternates are nested too deeply");
    const next = level.flatMap(readAlternates).filter((path) => !found.has(path));
    for (const path of next) found.set(path, { path, store: assertAllowed(path, gitDir, named) });
    level = next.map(realOf);
  }
  return [...found.values()];
}

/** The binds that show a repository's objects, and nothing else, to a jail. Alternates appear at the paths that the store names. */
export function objectBinds({ objects, alternates = [] }: ObjectStore): JailBind[] {
  const { uid } = lstatSync(join(objects, ".."));
  const borrowed = alternates.map(({ path, store }) => bindsOf(store, path, lstatSync(join(store, "..")).uid));
  return [bindsOf(objects, INSIDE_OBJECTS, uid), ...borrowed].flat();
}

function bindsOf(store: string, target: string, uid: number): JailBind[] {
  const parts = partsOf(store, uid);
  const bind = (name: string): JailBind => ({ source: join(store, name), target: join(target, name), owned: true });
  return parts === undefined ? [{ source: store, target, owned: true }] : parts.map(bind);
}

/** The parts of a store by name, if its directory holds anything else; undefined if it doesn't. */
function partsOf(store: string, uid: number): string[] | undefined {
  const top = lstatSync(store);
  if (!top.isDirectory() || top.uid !== uid) throw unsafePart(store, "a directory of the repository's owner");
  const entries = readdirSync(store, { withFileTypes: true });
  const parts = entries.filter(({ name }) => PART.test(name));
  for (const part of parts) {
    if (!part.isDirectory()) throw unsafePart(join(store, part.name), "a directory of its own");
  }
  const isStray = (entry: (typeof entries)[number]): boolean => !(LEFTOVER.test(entry.name) && entry.isFile());
  const hasStrays = entries.some((entry) => !PART.test(entry.name) && isStray(entry));
  return hasStrays ? parts.map(({ name }) => name) : undefined;
}

function readAlternates(store: string): string[] {
  const text = readUntrustedFile(join(store, "info", "alternates"))?.toString("utf8") ?? "";
  const paths = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  for (const path of paths) {
    if (!isAbsolute(path) || path.startsWith('"')) {
      throw unsupported(store, `its alternate ${JSON.stringify(path)} is not an absolute path`);
    }
  }
  return paths;
}

/** The real path of a store that the repository may borrow from. */
function assertAllowed(path: string, gitDir: string, named: ReadonlySet<string>): string {
  const store = realOf(path);
  if (named.has(store) || (store === path && path.startsWith(gitDir + sep))) {
    partsOf(store, lstatSync(join(store, "..")).uid);
    return store;
  }
  throw new SandboxError("permission_denied", `The repository borrows objects from ${path}, which is outside of it`, {
    hint: `if you trust it, allow it by name: gitAlternates: [${JSON.stringify(path)}], or --git-alternate ${path}`,
  });
}

function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function unsupported(objects: string, why: string): SandboxError {
  return new SandboxError("unsupported", `The object store ${objects} cannot be shown to a sandbox: ${why}`, {
    hint: "Make the repository independent: git repack -a -d && rm .git/objects/info/alternates",
  });
}
