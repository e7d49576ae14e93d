import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { privateSubdirectory } from "../../../machine/home.js";
import { isTagDead, ownerTag } from "../../../machine/owner.js";
import { removeTree } from "../../../machine/remove-tree.js";
import { attempt } from "../../../util/attempt.js";
import { createMemory } from "./memory.js";

/** The parts of `/etc` that programs need and that reveal nothing about the host's users or secrets. */
const SHOWN = [
  "alternatives",
  "ca-certificates",
  "fonts",
  "java",
  "java-17-openjdk",
  "java-21-openjdk",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "localtime",
  "mime.types",
  "perl",
  "pki/tls/certs",
  "protocols",
  "python3",
  "services",
  "ssl/certs",
  "ssl/openssl.cnf",
  "timezone",
];

const remembered = createMemory<string>();

/** What an `/etc` has besides, by names below it. */
export interface EtcChanges {
  readonly links?: Readonly<Record<string, string>>;
  readonly copies?: Readonly<Record<string, string>>;
}

/**
 * A host directory that is the whole `/etc` of a sandbox: generated files, and copies of a few of the host's. One bind instead of two dozen, which
 * would cost time in every sandbox and every command.
 *
 * It is made once for each state of those files and shared by all sandboxes. `empty` names files to bind something over, `links` names links to
 * have in place of the host's files, and where they lead. `copies` names copies of the host's files, by their paths there.
 */
export function prepareEtc(
  made: Readonly<Record<string, string>>,
  empty: readonly string[] = [],
  { links = {}, copies = {} }: EtcChanges = {},
): string {
  const parent = privateSubdirectory("etc");
  const own = JSON.stringify([made, empty, links, copies]);
  const target = join(
    parent,
    remembered(own, () => fingerprint(own, Object.values(copies))),
  );
  const files = { ...Object.fromEntries(empty.map((name) => [name, ""])), ...made };
  if (!touch(target)) makeEtc(parent, target, files, { links, copies });
  return target;
}

function makeEtc(
  parent: string,
  target: string,
  made: Readonly<Record<string, string>>,
  { links, copies }: Required<EtcChanges>,
): void {
  sweepDrafts(parent);
  const draft = draftIn(parent);
  try {
    makeDirectory(draft);
    for (const name of SHOWN) copyShown(join("/etc", name), join(draft, name));
    for (const [name, text] of Object.entries(made)) {
      writeFileSync(join(draft, name), text);
      chmodSync(join(draft, name), 0o644);
    }
    for (const [name, from] of Object.entries(copies)) copyPlain(from, join(draft, name));
    for (const [name, leadsTo] of Object.entries(links)) placeLink(draft, name, leadsTo);
    renameSync(draft, target);
  } catch (error) {
    // The disk is full, or another process was faster.
    void removeTree(draft).catch(() => undefined);
    if (!existsSync(target)) throw error;
  }
}

/** One of the names above: a link into `/usr` stays a link, any other is followed, as a bind would be. */
function copyShown(from: string, to: string): void {
  const found = lstatSync(from, { throwIfNoEntry: false });
  if (found === undefined) return;
  makeDirectory(dirname(to));
  if (!found.isSymbolicLink()) {
    copyTree(from, to, found);
    return;
  }
  const real = attempt(() => realpathSync(from));
  if (real === undefined) return;
  if (real.startsWith("/usr/")) symlinkSync(real, to);
  else copyTree(real, to, statSync(real));
}

/** Copies what every user may read. Links stay links: those that lead outside of what is shown lead nowhere. */
function copyTree(from: string, to: string, stat: Stats): void {
  if (stat.isSymbolicLink()) {
    symlinkSync(readlinkSync(from), to);
  } else if (stat.isFile() && (stat.mode & 0o004) !== 0) {
    copyFileSync(from, to);
    chmodSync(to, 0o644);
  } else if (stat.isDirectory() && (stat.mode & 0o005) === 0o005) {
    makeDirectory(to);
    for (const name of readdirSync(from)) copyTree(join(from, name), join(to, name), lstatSync(join(from, name)));
  }
}

/** Copies a file that every user may read, wherever a link of the host leads to. */
function copyPlain(from: string, to: string): void {
  makeDirectory(dirname(to));
  copyTree(from, to, statSync(from));
}

/** Puts a link in place of a file, unless a link of the host leads out of the directory on the way there. */
function placeLink(draft: string, name: string, leadsTo: string): void {
  const path = join(draft, name);
  makeDirectory(dirname(path));
  if (realpathSync(dirname(path)) !== join(realpathSync(draft), dirname(name))) return;
  rmSync(path, { force: true });
  symlinkSync(leadsTo, path);
}

/** Makes a directory, and those above it, readable for every user regardless of the umask of this process. */
function makeDirectory(path: string): void {
  if (existsSync(path)) return;
  makeDirectory(dirname(path));
  mkdirSync(path);
  chmodSync(path, 0o755);
}

/** Changes with every file that is copied. Replacing a link changes the directory that contains it. */
function fingerprint(own: string, copied: readonly string[]): string {
  const hash = createHash("sha256").update(own);
  const visit = (path: string): void => {
    const stat = attempt(() => statSync(path));
    if (stat === undefined) return;
    hash.update(`${path}\0${stat.ino} ${stat.size} ${stat.mode} ${stat.mtimeMs} ${stat.ctimeMs}\0`);
    if (!stat.isDirectory()) return;
    for (const entry of attempt(() => readdirSync(path, { withFileTypes: true })) ?? []) {
      if (!entry.isSymbolicLink()) visit(join(path, entry.name));
    }
  };
  for (const name of SHOWN) visit(join("/etc", name));
  for (const path of copied) visit(path);
  return hash.digest("hex").slice(0, 32);
}

/** Marks a directory as used now; false if there is none. */
function touch(path: string): boolean {
  const now = new Date();
  return attempt(() => utimesSync(path, now, now) ?? true) === true;
}

/** A name for what is being made or removed there. What a process leaves when it dies is removed when the next one is made. */
export function draftIn(parent: string): string {
  return join(parent, `.new.${ownerTag()}.${randomBytes(6).toString("hex")}`);
}

function sweepDrafts(parent: string): void {
  for (const name of readdirSync(parent)) {
    const isLeft = name.startsWith(".new.") && isTagDead(name.split(".")[2] ?? "");
    if (isLeft) void removeTree(join(parent, name)).catch(() => undefined);
  }
}
