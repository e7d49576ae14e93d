import { chmodSync, lstatSync, mkdirSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import type { JailBind } from "../../jail.js";

/** The private home in the sandbox. */
export const INSIDE_HOME = "/home/sandbox";
/** The directory for temporary files in the sandbox. */
export const INSIDE_TMP = "/tmp";

const PLACES = [
  { name: "home", target: INSIDE_HOME, mode: 0o700 },
  { name: "tmp", target: INSIDE_TMP, mode: 0o1777 },
] as const;

/**
 * The home and the temporary files of a sandbox that keeps all, next to its record and removed with it. Unlike memory they have no size of their own:
 * they take room on the disk, like the work directory. `binds` are all other trees of the sandbox.
 */
export function makeKeptPlaces(directory: string, binds: readonly JailBind[]): JailBind[] {
  return PLACES.map(({ name, target, mode }) => {
    const source = join(directory, name);
    mkdirSync(source, { recursive: true });
    chmodSync(source, mode);
    const inner = binds.filter((bind) => isBeneath(bind.target, target));
    const outermost = inner.filter((bind) => !inner.some((other) => isBeneath(bind.target, other.target)));
    for (const bind of outermost) {
      makeMountPoint(source, bind.target.slice(target.length + 1).split("/"), statSync(bind.source).isDirectory());
    }
    return { source, target, writable: true, owned: true };
  });
}

function isBeneath(path: string, above: string): boolean {
  return path.startsWith(`${above}/`);
}

/**
 * Makes the place of a mount in a tree that commands have written to. Whatever follows links later finds none here: nothing runs in the sandbox now,
 * so what is checked stays as it is.
 */
function makeMountPoint(above: string, names: readonly string[], isDirectory: boolean): void {
  let path = above;
  for (const [at, name] of names.entries()) {
    path = join(path, name);
    const wantsDirectory = isDirectory || at < names.length - 1;
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (wantsDirectory ? found?.isDirectory() : found?.isFile()) continue;
    if (found?.isDirectory()) throw new SandboxError("tampered", `${path} must be a file, and is a directory`);
    if (found !== undefined) unlinkSync(path);
    if (wantsDirectory) mkdirSync(path, { mode: 0o755 });
    else writeFileSync(path, "", { flag: "wx", mode: 0o444 });
  }
}
