import { execFile } from "node:child_process";
import { existsSync, opendirSync, rmdirSync, unlinkSync } from "node:fs";
import { lstat, rm, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { isAbsolute, join, normalize, sep } from "node:path";
import { promisify } from "node:util";
import { SandboxError } from "../../contracts/errors.js";
import { gloveboxHome } from "./home.js";
import { userHome } from "./user-home.js";

const run = promisify(execFile);
const env = { PATH: "/usr/bin:/bin", LC_ALL: "C" };
/** So many entries are removed faster than a program starts. */
const FEW = 200;

/**
 * Removes a directory and everything below it. No error if it is absent.
 *
 * It uses the system's `rm`, which walks by directory handles: a symbolic link swapped in during the walk can't lead it outside. Node's recursive
 * `rm` can't promise that.
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

/** Like `removeTree`, for several directories with one program. */
export async function removeTrees(paths: readonly string[]): Promise<void> {
  const left: string[] = [];
  for (const path of paths) {
    assertRemovable(path);
    if (!(await removeEmpty(path))) left.push(path);
  }
  if (left.length > 1 && process.platform !== "win32" && (await removeOnce(...left)) === undefined) return;
  for (const path of left) await removeTree(path);
}

/** Like `removeTree`, for a directory that no command can write to (any more). Starts no program if there is little in it. */
export async function removeOwnTree(path: string): Promise<void> {
  assertRemovable(path);
  if (!(await removeFew(path))) await removeTree(path);
}

/** False if something is left: there are too many entries, or they can't be removed this way. */
async function removeFew(path: string): Promise<boolean> {
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
    for (const directory of directories.slice(1).reverse()) rmdirSync(directory);
    // If it was mounted in a sandbox, the kernel waits for every core first. Other sandboxes need not wait with it.
    await rmdir(path);
    return true;
  } catch {
    return false;
  }
}

/** Most sandboxes leave an empty directory, which needs no program. */
async function removeEmpty(path: string): Promise<boolean> {
  try {
    await rmdir(path);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

/** Returns what went wrong, or nothing if the trees are gone. */
async function removeOnce(...paths: string[]): Promise<string | undefined> {
  const remove = (flags: string[]): Promise<unknown> =>
    run(systemProgram("rm"), [...flags, "--", ...paths], { env, maxBuffer: 1 << 24 });
  try {
    if (process.platform === "linux") {
      // The rm of a small system may not have the long option.
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

/** An ordinary user can't empty a directory without write permission, not even their own. */
async function openDirectories(path: string): Promise<void> {
  const test = ["-xdev", "-type", "d", "!", "-perm", "-0700", "-execdir", "chmod", "u+rwx", "--", "{}", ";"];
  await run(systemProgram("find"), [path, ...test], { env, maxBuffer: 1 << 24 }).catch(() => undefined);
}

function systemProgram(name: string): string {
  return existsSync(`/usr/bin/${name}`) ? `/usr/bin/${name}` : `/bin/${name}`;
}

/** A person may have edited a record: never remove what no sandbox can own, whatever the record says. */
function assertRemovable(path: string): void {
  const refused = !isAbsolute(path) || normalize(path) !== path || path.includes("\0");
  const contains = (inner: string): boolean => inner === path || inner.startsWith(path + sep);
  if (refused || path.split(sep).length < 3 || [userHome(), tmpdir(), gloveboxHome()].some(contains)) {
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
