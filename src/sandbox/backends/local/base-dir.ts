import { existsSync, lstatSync, realpathSync, statSync } from "node:fs";
import { isAbsolute, join, relative, resolve } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import type { Mount } from "../../../../contracts/types.js";
import { holdsTooMuch } from "../../../machine/holds-too-much.js";
import { gloveboxHome } from "../../../machine/home.js";
import { isWithin } from "../../../machine/system-folders.js";
import type { JailBind } from "../../jail.js";

/** Where a mount can only cover what already exists. */
const READ_ONLY = ["/bin", "/lib", "/lib32", "/lib64", "/sbin", "/usr"];

/** The real path of the user's directory. Throws if the sandbox could then reach more than that directory. */
export function checkBaseDir(baseDir: string): string {
  const real = realOf(baseDir, "baseDir");
  if (!statSync(real).isDirectory()) throw refused("baseDir", baseDir, "not a directory");
  const reason = holdsTooMuch(real);
  if (reason !== undefined) throw refused("baseDir", baseDir, reason);
  if (lstatSync(join(real, ".git"), { throwIfNoEntry: false })?.isSymbolicLink()) {
    throw new SandboxError(
      "unsupported",
      `Invalid baseDir "${baseDir}" — its .git is a link, which can't be protected`,
      {
        hint: "replace the link with a file that contains: gitdir: <path>",
      },
    );
  }
  return real;
}

/** Turns the `mounts` option into binds. Each is checked before anything is created. */
export function checkMounts(mounts: readonly Mount[], workDir: string): JailBind[] {
  const binds: JailBind[] = [];
  for (const [index, mount] of mounts.entries()) binds.push(checkMount(mount, index, workDir, binds));
  return binds;
}

/** Mounts as they are saved: independent of the current directory of the process and of links. */
export function resolveMounts(mounts: readonly Mount[]): Mount[] {
  return mounts.map(({ source, target = resolve(source), writable = false }, index) => ({
    source: realOf(source, `mounts[${index}].source`),
    target,
    writable,
  }));
}

function checkMount(
  { source, target, writable = false }: Mount,
  index: number,
  workDir: string,
  before: readonly JailBind[],
): JailBind {
  const option = `mounts[${index}].source`;
  const real = realOf(source, option);
  const stat = statSync(real);
  if (!stat.isDirectory() && !stat.isFile()) throw refused(option, source, "neither a file nor a directory");
  const reason =
    real === "/" || isWithin(real, gloveboxHome()) || isWithin(gloveboxHome(), real) ? holdsTooMuch(real) : undefined;
  if (reason !== undefined) throw refused(option, source, reason);
  const place = checkTarget(target ?? resolve(source), `mounts[${index}].target`, workDir);
  for (const other of before) {
    if (isWithin(other.target, place)) {
      throw refused(`mounts[${index}].target`, place, `it would hide the mount at ${other.target}`);
    }
    if (isWithin(place, other.target) && !existsSync(join(other.source, relative(other.target, place)))) {
      throw refused(`mounts[${index}].target`, place, `it does not exist in the mount at ${other.target}`);
    }
  }
  return { source: real, target: place, writable, owned: true };
}

function checkTarget(target: string, option: string, workDir: string): string {
  if (!isAbsolute(target) || resolve(target) !== target)
    throw refused(option, target, "not a normalised absolute path");
  if (
    target === "/" ||
    isWithin(workDir, target) ||
    ["/proc", "/dev", "/sys", "/glovebox"].some((path) => isWithin(target, path))
  ) {
    throw refused(option, target, "it would hide part of the sandbox itself");
  }
  if (READ_ONLY.some((path) => isWithin(target, path)) && !existsSync(target))
    throw refused(option, target, "nothing can be added to the system, which is read-only");
  if (isWithin(target, workDir))
    throw refused(option, target, "a mount point in the work directory would be left behind");
  return target;
}

function realOf(path: string, option: string): string {
  try {
    return realpathSync(resolve(path));
  } catch (cause) {
    throw new SandboxError("not_found", `Invalid ${option} "${path}" — no such file or directory`, {
      cause,
      hint: "check the path; it is one of this machine",
    });
  }
}

function refused(option: string, value: string, reason: string): SandboxError {
  return new SandboxError("invalid_argument", `Invalid ${option} "${value}" — ${reason}`);
}

/** Binds that make a git directory in the user's own directory read-only in the sandbox. */
export function protectGit(workDir: string): JailBind[] {
  const path = join(workDir, ".git");
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? [] : [{ source: path, target: path, owned: true }];
}
