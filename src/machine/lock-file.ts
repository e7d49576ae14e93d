import { randomBytes } from "node:crypto";
import { linkSync, readdirSync, readFileSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "../../contracts/errors.js";
import { attempt } from "../util/attempt.js";
import { awaitOrphans } from "./orphans.js";
import { currentOwner, isOwnerAlive, isTagDead, type Owner, ownerTag } from "./owner.js";

/** Who holds a lock file. A token is never used twice. */
export interface LockHolder {
  readonly token: string;
  /** What is locked, if the holder wrote it down. */
  readonly name?: string;
  /** Absent if the file can't be read; a power loss leaves such files. */
  readonly owner?: Owner;
}

/** One attempt of one process to get one lock. */
export interface Contender {
  /** Gets the lock, or returns who holds it. */
  tryOnce(): Promise<LockHolder | undefined>;
  /** When a dead process got the lock that it never released, in milliseconds since 1970; undefined if the lock was free. */
  heldBefore(): number | undefined;
  /** Releases the lock, or gives up the attempt. Never fails. */
  leave(): void;
}

const ABANDONED_AFTER = 3_600_000;
/** Tokens of locks that this process has released but could not remove. */
const givenBack = new Set<string>();

/**
 * Contends for the lock file `<base>.lock`. All calls are synchronous: handing such small ones to another thread would take longer.
 *
 * A lock appears by `link`, so it is complete at once and exactly one contender succeeds. A dead holder's lock is removed only by the one process
 * that managed to create `<base>.<token>.break` for the token of that very lock. If that process dies too, the right passes to the process that
 * creates the break file for *its* token, and so on. Otherwise, of two processes that both saw the dead holder, the slower one could remove the
 * lock of the new holder.
 */
export function createContender(base: string, name?: string): Contender {
  const token = randomBytes(12).toString("hex");
  const draft = `${base}.${ownerTag()}.${token}.tmp`;
  const lock = `${base}.lock`;
  try {
    writeFileSync(draft, JSON.stringify({ token, name, owner: currentOwner() }), { mode: 0o600, flag: "wx" });
  } catch (error) {
    remove(draft);
    throw error;
  }
  let heldBefore: number | undefined;
  const tryOnce = async (): Promise<LockHolder | undefined> => {
    for (let round = 0; ; round++) {
      if (linkOnce(draft, lock)) {
        remove(draft);
        return undefined;
      }
      const holder = readHolder(lock);
      if (holder === undefined && round < 64) continue;
      if (holder === undefined) return { token: "" };
      if (round >= 8 || !isDead(holder)) return holder;
      if (holder.owner !== undefined && !givenBack.has(holder.token)) await awaitOrphans(holder.owner);
      const since = attempt(() => statSync(lock))?.mtimeMs;
      const rival = removeStale(base, draft, holder);
      if (rival !== undefined) return rival;
      heldBefore ??= since;
    }
  };
  const leave = (): void => {
    // A disk error here does not undo the work done under the lock; the next contender tries to remove it again.
    attempt(() => remove(draft));
    try {
      if (readHolder(lock)?.token === token) remove(lock);
    } catch {
      givenBack.add(token);
    }
  };
  return { tryOnce, heldBefore: () => heldBefore, leave };
}

/** The live process that holds the lock `<base>.lock`; undefined if none does. */
export function liveHolder(base: string): LockHolder | undefined {
  const holder = readHolder(`${base}.lock`);
  return holder === undefined || isDead(holder) ? undefined : holder;
}

/** The names that dead processes hold locked in a directory. */
export function namesLeftLocked(directory: string): string[] {
  const paths = readdirSync(directory)
    .filter((each) => each.endsWith(".lock"))
    .map((each) => join(directory, each));
  return paths.map(readHolder).flatMap((holder) => (holder?.name !== undefined && isDead(holder) ? [holder.name] : []));
}

/** Removes the lock files, drafts and break files that dead processes left in a directory. */
export async function sweepLocks(directory: string): Promise<void> {
  const names = readdirSync(directory);
  const inDirectory = (suffix: string): string[] =>
    names.filter((name) => name.endsWith(suffix)).map((name) => join(directory, name));
  for (const path of inDirectory(".tmp")) if (isAbandoned(path)) remove(path);
  for (const path of inDirectory(".lock")) {
    const holder = readHolder(path);
    if (holder === undefined || !isDead(holder)) continue;
    const contender = createContender(path.slice(0, -".lock".length));
    try {
      await contender.tryOnce();
    } finally {
      contender.leave();
    }
  }
  // The names were listed before this check of the lock: if it is gone, so is every lock these files were about.
  for (const path of inDirectory(".break")) {
    const lock = path.replace(/\.[^./]+\.break$/, ".lock");
    if (readHolder(lock) === undefined && isAbandoned(path)) remove(path);
  }
}

/** Removes a dead holder's lock, or returns the live process that is about to. */
function removeStale(base: string, draft: string, stale: LockHolder): LockHolder | undefined {
  const lock = `${base}.lock`;
  const passed: string[] = [];
  let token = stale.token;
  for (let depth = 0; depth < 64; depth++) {
    const right = `${base}.${token}.break`;
    if (linkOnce(draft, right)) {
      if (readHolder(lock)?.token === stale.token) remove(lock);
      for (const path of [...passed, right]) remove(path);
      return undefined;
    }
    const rival = readHolder(right);
    if (rival === undefined) return undefined;
    if (!isDead(rival)) return rival;
    passed.push(right);
    token = rival.token;
  }
  return stale;
}

function isDead(holder: LockHolder): boolean {
  return givenBack.has(holder.token) || holder.owner === undefined || isOwnerAlive(holder.owner) === "dead";
}

function isAbandoned(path: string): boolean {
  const holder = readHolder(path);
  if (holder?.owner !== undefined) return isDead(holder);
  if (isTagDead(path.split(".").at(-3) ?? "")) return true;
  const made = attempt(() => statSync(path));
  return made !== undefined && Date.now() - made.mtimeMs > ABANDONED_AFTER;
}

function readHolder(path: string): LockHolder | undefined {
  try {
    const text = readFileSync(path, "utf8");
    return parseHolder(text) ?? { token: `damaged-${statSync(path).ino}` };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function parseHolder(text: string): LockHolder | undefined {
  try {
    const { token, name, owner } = JSON.parse(text) as { token?: unknown; name?: unknown; owner?: Owner };
    if (typeof token === "string" && /^[0-9a-f]{24}$/.test(token) && typeof owner?.pid === "number") {
      return { token, owner, ...(typeof name === "string" && { name }) };
    }
  } catch {
    // Not completely written: an unreadable holder is none.
  }
  return undefined;
}

function linkOnce(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "EEXIST") return false;
    if (code !== "EPERM" && code !== "ENOTSUP" && code !== "ENOSYS") throw error;
    throw new SandboxError("unsupported", `The file system of ${to} has no hard links, which Glovebox's locks need`, {
      hint: "Set GLOVEBOX_HOME to a directory on another file system.",
      cause: error,
    });
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
