import { execFile } from "node:child_process";
import { closeSync, existsSync, ftruncateSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type { Resource } from "../../../../../contracts/backend.js";
import { SandboxError, toSandboxError } from "../../../../../contracts/errors.js";
import { standing } from "../../../../machine/standing.js";

const run = promisify(execFile);
const env = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };
const ATTEMPTS = 50;

/** An ext4 file system of a fixed size, in a file. Everything that a sandbox can write to on disk is on it. */
export interface DiskImage {
  readonly file: string;
  readonly bytes: number;
  /** Where it is mounted. Nothing but `places` uses it from there. */
  readonly mount: string;
  /** Directories that commands can write to. Each shows a directory of the image. */
  readonly places: readonly string[];
}

let canMount: boolean | undefined;

/** Whether this machine lets us mount one: it takes the host's root, loop devices and the program that makes file systems. */
export function canMountImages(): boolean {
  canMount ??= hasMeans();
  return canMount;
}

function hasMeans(): boolean {
  if (standing() !== "root" || !existsSync("/dev/loop-control")) return false;
  if (!["/usr/sbin/mke2fs", "/sbin/mke2fs"].some((path) => existsSync(path))) return false;
  return /^\s*0\s+0\s+4294967295\s*$/m.test(readFileSync("/proc/self/uid_map", "utf8"));
}

/** An image in `directory` for these places. */
export function planImage(directory: string, bytes: number, places: readonly string[]): DiskImage {
  return { file: join(directory, "disk.img"), bytes, mount: join(directory, "disk"), places };
}

/** What has to be unmounted, in the order in which it is mounted. */
export function mountsOf({ mount, places }: DiskImage): Resource[] {
  return [mount, ...places].map((path) => ({ kind: "mount", path }));
}

/** Makes an image and mounts it. Its size is that of the file: the file system's own part is small and counts too. */
export async function makeImage(image: DiskImage, signal?: AbortSignal): Promise<void> {
  try {
    mkdirSync(image.mount, { recursive: true, mode: 0o700 });
    const file = openSync(image.file, "wx", 0o600);
    ftruncateSync(file, image.bytes);
    closeSync(file);
    const features = ["-t", "ext4", "-b", "4096", "-m", "0", "-i", "8192", "-O", "^has_journal,^resize_inode"];
    const how = ["-E", "lazy_itable_init=1,nodiscard"];
    await run("mke2fs", ["-q", "-F", ...features, ...how, image.file], { env, signal });
  } catch (error) {
    throw toSandboxError(error, { operation: "limits" });
  }
  await mountImage(image, signal);
}

/** Mounts an image and its places, unless they are mounted. */
export async function mountImage({ file, mount, places }: DiskImage, signal?: AbortSignal): Promise<void> {
  try {
    const mounted = mountPoints();
    if (!mounted.has(mount)) await run("mount", ["-o", "loop,nosuid,nodev,noatime", file, mount], { env, signal });
    for (const [index, place] of places.entries()) {
      if (mounted.has(place)) continue;
      const source = join(mount, String(index));
      mkdirSync(source, { recursive: true, mode: 0o700 });
      mkdirSync(place, { recursive: true, mode: 0o700 });
      await run("mount", ["--bind", source, place], { env, signal });
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw new SandboxError("unsupported", `limits.disk can't be enforced: ${toSandboxError(error).message}`, {
      cause: error,
      hint: "it takes loop devices; leave limits.disk out, or use another machine",
    });
  }
}

/** Unmounts an image and its places. The files stay in it. */
export async function unmountImage(image: DiskImage): Promise<void> {
  for (const { path } of mountsOf(image).reverse()) await removeMount(path as string);
}

/** Unmounts a directory if an image is mounted there. Idempotent; throws if something still uses it. */
export async function removeMount(path: string): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS && mountPoints().has(path); attempt++) {
    if (attempt > 0) await delay(20);
    await run("umount", ["--", path], { env }).catch(() => undefined);
  }
  if (mountPoints().has(path)) {
    throw new SandboxError("unavailable", `${path} can't be unmounted: something still uses it`, {
      operation: "remove",
    });
  }
}

/** Where images are mounted. The kernel writes a space in a path as \\040. */
function mountPoints(): Set<string> {
  const lines = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  const images = lines.filter((line) => / - ext4 \/dev\/loop\d+ /.test(line));
  return new Set(images.map((line) => (line.split(" ")[4] ?? "").replace(/\\([0-7]{3})/g, decode)));
}

function decode(_: string, octal: string): string {
  return String.fromCharCode(Number.parseInt(octal, 8));
}
