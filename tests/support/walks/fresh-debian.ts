import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { DEBIAN, whyNoImage } from "../../../scripts/docker-images.mjs";
import { ensureArchive } from "../../../scripts/image-cache.mjs";
import { madeForRun } from "../run/made-for-run.js";

/** Where readers have Node and npm. */
export const NODE_PREFIX = "/opt/node";
export const READER_PATH: string = `${NODE_PREFIX}/bin:/usr/local/bin:/usr/bin:/bin`;

/** Starts a program in a Debian that has nothing but its packages: its own root, processes and temporary files. */
const ENTER = `
set -e
root=$1 node=$2 home=$3 tmp=$4 at=$5 id=$6; shift 6
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --bind "$node" "$root${NODE_PREFIX}"
mount --bind "$home" "$root$at"
mount --bind "$tmp" "$root/tmp"
cd "$root"
pivot_root . mnt
umount -l mnt
cd "$at"
exec setpriv --reuid "$id" --regid "$id" --clear-groups env -i "$@"
`;

/** Why there is no Debian to go to; undefined if there is. */
export function whyNoDebian(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0)
    return "only root of Linux can enter a system of its own";
  const missing = ["unshare", "setpriv", "pivot_root", "tar"].filter((name) => !hasCommand(name));
  if (missing.length > 0) return `not installed: ${missing.join(", ")}`;
  return whyNoImage(DEBIAN) ?? whyNoNode();
}

/** Why this Node can't be given to a reader; undefined if it can. */
export function whyNoNode(): string | undefined {
  return existsSync(ownNpm()) ? undefined : `there is no npm beside this Node: ${ownNpm()}`;
}

/** A folder with this Node and its npm, laid out as its archives are. Made once for all tests of a run. */
export function nodePrefix(): string {
  return madeForRun("node-prefix", (folder) => {
    const [bin, modules] = [join(folder, "bin"), join(folder, "lib", "node_modules")];
    for (const each of [bin, modules]) mkdirSync(each, { recursive: true });
    cpSync(process.execPath, join(bin, "node"));
    cpSync(ownNpm(), join(modules, "npm"), { recursive: true, verbatimSymlinks: true });
    for (const name of ["npm", "npx"]) symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(bin, name));
    execFileSync("chmod", ["-R", "go+rX", folder]);
  });
}

/** The files of a fresh Debian, with bubblewrap and git. Unpacked once for all tests of a run. */
export async function debianRoot(): Promise<string> {
  const archive = await ensureArchive(DEBIAN);
  return madeForRun("debian-root", (folder) => {
    execFileSync("tar", ["-xf", archive, "-C", folder]);
    for (const path of [NODE_PREFIX, "/home/reader"]) mkdirSync(join(folder, path), { recursive: true });
    execFileSync("chmod", ["755", folder]);
  });
}

/** The command line that runs a script in that Debian, as this user, with a home directory of this machine. */
export async function enterDebian(
  opts: { home: string; tmp: string; id: number; env: Readonly<Record<string, string>> },
  script: string,
): Promise<[string, ...string[]]> {
  const at = homeOf(opts.id);
  const env = { PATH: READER_PATH, HOME: at, LANG: "C.UTF-8", ...opts.env };
  const args = [await debianRoot(), nodePrefix(), opts.home, opts.tmp, at, String(opts.id)];
  const alone = ["--mount", "--propagation", "private", "--pid", "--fork", "--kill-child=SIGKILL"];
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  return ["unshare", ...alone, "sh", "-c", ENTER, "enter", ...args, ...variables, "sh", "-c", script];
}

/** The home directory of a user there. */
export function homeOf(id: number): string {
  return id === 0 ? "/root" : "/home/reader";
}

/** Whether a program is installed where this process or root finds it. */
export function hasCommand(name: string): boolean {
  const directories = [...(process.env["PATH"] ?? "").split(":"), "/usr/sbin", "/sbin"];
  return directories.some((directory) => existsSync(join(directory, name)));
}

function ownNpm(): string {
  return join(dirname(dirname(process.execPath)), "lib", "node_modules", "npm");
}
