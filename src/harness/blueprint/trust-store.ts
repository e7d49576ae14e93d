import { randomBytes } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { privateSubdirectory, writeFileAtomic } from "../../sandbox/host.js";
import { isoTime } from "../../util/iso-time.js";
import { packageRoot } from "../../util/own-version.js";
import type { CodeBundle } from "./code-bundle.js";

/** Whether this user has trusted exactly this content before. */
export function isTrusted(sha256: string): boolean {
  return existsSync(recordOf(sha256));
}

/** Remembers that this user trusts exactly this content. */
export async function rememberTrust(sha256: string, path: string, files: readonly string[]): Promise<void> {
  const record = { version: 1, sha256, path, files, trustedAt: isoTime() };
  await writeFileAtomic(recordOf(sha256), `${JSON.stringify(record, undefined, 2)}\n`);
}

/**
 * Puts the very bytes that were hashed into a directory of this user's own, and gives the path of the file to run. A
 * relative import finds what was hashed and nothing else; `glovebox` is this program itself.
 */
export function unpackTrusted({ sha256, entry, files, links }: CodeBundle): string {
  const place = join(privateSubdirectory("trust"), sha256);
  if (!existsSync(place)) {
    const draft = `${place}.${randomBytes(6).toString("hex")}.tmp`;
    try {
      for (const [name, bytes] of files) put(join(draft, name), (path) => writeFileSync(path, bytes, { mode: 0o600 }));
      for (const [name, target] of links) put(join(draft, name), (path) => symlinkSync(target, path));
      renameSync(draft, place);
    } catch (error) {
      rmSync(draft, { recursive: true, force: true });
      // Another process was faster; what it wrote has the same name, so the same content.
      if (!existsSync(place)) throw error;
    }
  }
  linkSelf(join(place, "node_modules", "glovebox"));
  return join(place, entry);
}

/** What a blueprint imports as `glovebox` is the program that runs it, also after that was installed elsewhere. */
function linkSelf(path: string): void {
  const target = packageRoot();
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() && readlinkSync(path) === target) return;
  rmSync(path, { recursive: true, force: true });
  put(path, () => symlinkSync(target, path));
}

function put(path: string, make: (path: string) => void): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  make(path);
}

function recordOf(sha256: string): string {
  return join(privateSubdirectory("trust"), `${sha256}.json`);
}
