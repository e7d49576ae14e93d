import { execFile } from "node:child_process";
import { existsSync, opendirSync, rmdirSync, unlinkSync } from "node:fs";
import { lstat, rm, rmdir } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { isAbsolute, join, normalize, sep } from "node:path";
import { promisify } from "node:util";
import { SandboxError } from "../../contracts/errors.js";
import { gloveboxHome } from "./home.js";

const run = promisify(execFile);
const env = { PATH: "/usr/bin:/bin", LC_ALL: "C" };
/** Entries that are removed sooner than a program is started. */
const FEW = 200;

/**
 * Deletes a directory and all below it; one that is not there is no error.
 *
 * The system's `rm` is used because it walks by directory handles: a symbolic link swapped in during the walk cannot lead
 * it outside, which Node's own recursive `rm` cannot promise.
 */
export async function removeTree(path: string): Promise<void> {
  assertRemovable(path);
  if (await removeEmpty(path)) return;
  if (process.platform === "win32") return await rm(path, { recursive: true, force: true, maxRetries: 3 });
  const first = await removeOnce(path);
  if (first === undefined) return;
  await openDirectories(path);
  const second = await removeOnce(path);
  if (second === undefined) return;
  throw new SandboxError(codeOf(second), `Cannot remove ${path}: ${second.trim().split("\n")[0] ?? ""}`, {
    operation: "remove",
  });
}

/** As `removeTree`, for several directories, by one program. */
export async function removeTrees(paths: readonly string[]): Promise<void> {
  const left: string[] = [];
  for (const path of paths) {
    assertRemovable(path);
    if (!(await removeEmpty(path))) left.push(path);
  }
  if (left.length > 1 && process.platform !== "win32" && (await removeOnce(...left)) === undefined) return;
  for (const path of left) await removeTree(path);
}

/** As `removeTree`, for a directory that nothing inside a sandbox can write, or can write any more: where it holds little, no program is started for it. */
export async function removeOwnTree(path: string): Promise<void> {
  assertRemovable(path);
  if (!removeFew(path)) await removeTree(path);
}

/** False when something is left: there is more than a few, or it cannot be removed like this. */
function removeFew(path: string): boolean {
  const directories = [path];
  const others: string[] = [];
  try {
    for (const directory of directories) {
      const entries = opendirSync(directory);
      try {
        for (let entry = entries.readSync(); entry !== null; entry = entries.readSync()) {
          (entry.isDirectory() ? directories : others).push(join(directory, entry.name));
          if (directories.length + others.length > FEW) return false;
        }
      } finally {
        entries.closeSync();
      }
    }
    for (const other of others) unlinkSync(other);
    for (const directory of directories.reverse()) rmdirSync(directory);
    return true;
  } catch {
    return false;
  }
}

/** Most sandboxes leave an empty directory, for which no program has to be started. */
async function removeEmpty(path: string): Promise<boolean> {
  try {
    await rmdir(path);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

/** Tells what went wrong, or nothing when the trees are gone. */
async function removeOnce(...paths: string[]): Promise<string | undefined> {
  const remove = (flags: string[]): Promise<unknown> =>
    run(systemProgram("rm"), [...flags, "--", ...paths], { env, maxBuffer: 1 << 24 });
  try {
    if (process.platform === "linux") {
      // A small system's rm may not know the long option.
      await remove(["-rf", "--one-file-system"]).catch((error) =>
        /unrecognized option/.test(String(error)) ? remove(["-rf"]) : Promise.reject(error),
      );
    } else {
      await remove(["-rf"]);
    }
  } catch (error) {
    for (const path of paths) if (await isThere(path)) return String((error as { stderr?: unknown }).stderr || error);
  }
  return undefined;
}

/** An ordinary user cannot empty a directory without write permission, not even an own one. */
async function openDirectories(path: string): Promise<void> {
  const test = ["-xdev", "-type", "d", "!", "-perm", "-0700", "-execdir", "chmod", "u+rwx", "--", "{}", ";"];
  await run(systemProgram("find"), [path, ...test], { env, maxBuffer: 1 << 24 }).catch(() => undefined);
}

function systemProgram(name: string): string {
  return existsSync(`/usr/bin/${name}`) ? `/usr/bin/${name}` : `/bin/${name}`;
}

/** A record is a file that a person may have edited: what no sandbox can ever own is not removed, whatever it says. */
function assertRemovable(path: string): void {
  const refused = !isAbsolute(path) || normalize(path) !== path || path.includes("\0");
  const contains = (inner: string): boolean => inner === path || inner.startsWith(path + sep);
  if (refused || path.split(sep).length < 3 || [homedir(), tmpdir(), gloveboxHome()].some(contains)) {
    throw new SandboxError("invalid_path", `Refusing to remove ${JSON.stringify(path)}`, { operation: "remove" });
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

function codeOf(message: string): "permission_denied" | "internal" {
  return /permission denied|not permitted|read-only/i.test(message) ? "permission_denied" : "internal";
}
