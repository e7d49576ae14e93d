import { constants } from "node:fs";
import { chmod, copyFile, lstat, mkdir, mkdtemp, open, readdir, rename, rm, rmdir, symlink } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { codedError } from "../coded-error.js";
import { makeDirectories } from "../make-directories.js";
import { toPath } from "./byte-path.js";
import { malformed } from "./tar-decode.js";
import { LinkPlan } from "./tar-links.js";
import { escapes, toConfinedName, toText } from "./tar-names.js";
import { type ArchiveMember, readTar } from "./tar-read.js";

/** Default limit on the bytes that `unpackTar` writes: 32 GiB. */
const DEFAULT_MAX_BYTES: number = 32 * 1024 ** 3;
/** Default limit on the headers that `unpackTar` reads. */
const DEFAULT_MAX_ENTRIES = 1_000_000;
const MAX_NAMED_SKIPS = 1000;
const MAX_MTIME = 0o77777777777;
const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;

/** Limits of one `unpackTar`. */
export interface UnpackLimits {
  /** Bytes of all members together, skipped ones too. Default 32 GiB. */
  maxBytes?: number;
  /** Headers in the archive. Default 1 000 000. */
  maxEntries?: number;
  /**
   * What to do with symbolic links. `confined`, the default: one that leads outside is `path_confinement`. `kept`: make them
   * unchanged, wherever they lead, for a tree in which nobody on the host follows links. `origin`, the absolute path of the
   * original tree: turn links into it into links into the copy, and leave out those that lead outside.
   */
  links?: "confined" | "kept" | { origin: string };
}

/** The result of `unpackTar`. */
export interface UnpackResult {
  entries: number;
  bytes: number;
  /** Devices, FIFOs and unknown kinds left out, by name; at most the first 1000. */
  skipped: string[];
  /** Links left out because they lead outside, by name; at most the first 1000. */
  leftOut: string[];
}

/**
 * Unpacks an untrusted archive to a host path that does not exist or is an empty directory, else `conflict`. All or
 * nothing: the tree appears at the end by one rename. A name or link that leads outside is `path_confinement`, a broken
 * archive `tampered`, too much of anything `limit_exceeded`. Owners and special bits are dropped.
 */
export async function unpackTar(
  stream: AsyncIterable<Uint8Array>,
  hostDir: string,
  limits: UnpackLimits = {},
): Promise<UnpackResult> {
  const target = resolve(hostDir);
  const mode = await modeOfVacant(target);
  const parent = dirname(target);
  const firstMade = makeDirectories(parent);
  let staging: string | undefined;
  try {
    staging = await mkdtemp(join(parent, ".unpack-"));
    const root = join(staging, "root");
    await mkdir(root);
    const result = await new Unpacking(root, limits).run(stream);
    if (mode !== undefined) await chmod(root, mode);
    await moveInto(root, target);
    await rmdir(staging);
    return result;
  } catch (error) {
    if (staging !== undefined) await rm(staging, { recursive: true, force: true });
    if (firstMade !== undefined) await removeEmpty(parent, firstMade);
    throw error;
  }
}

class Unpacking {
  readonly #root: string;
  readonly #maxBytes: number;
  readonly #maxEntries: number;
  readonly #treatment: NonNullable<UnpackLimits["links"]>;
  readonly #links = new LinkPlan();
  readonly #result: UnpackResult = { entries: 0, bytes: 0, skipped: [], leftOut: [] };
  #spent = 0;
  #lastParent = "";

  constructor(root: string, limits: UnpackLimits) {
    this.#root = root;
    this.#maxBytes = limits.maxBytes ?? DEFAULT_MAX_BYTES;
    this.#maxEntries = limits.maxEntries ?? DEFAULT_MAX_ENTRIES;
    this.#treatment = limits.links ?? "confined";
  }

  async run(stream: AsyncIterable<Uint8Array>): Promise<UnpackResult> {
    for await (const member of readTar(stream, this.#maxEntries)) {
      this.#spend(member.size);
      await this.#add(member);
    }
    for (const { path, target } of this.#chosenLinks()) {
      await onArchiveName(path, symlink(toPath(Buffer.from(target, "latin1")), this.#at(path)));
    }
    return this.#result;
  }

  #chosenLinks(): { path: string; target: string }[] {
    if (this.#treatment === "kept") return this.#links.all();
    if (this.#treatment === "confined") return this.#links.confined();
    const { inside, outside } = this.#links.sorted(Buffer.from(this.#treatment.origin).toString("latin1"));
    this.#result.leftOut.push(...outside.slice(0, MAX_NAMED_SKIPS).map(toText));
    return inside;
  }

  async #add(member: ArchiveMember): Promise<void> {
    const isDirectory = member.type === "5" || (isRegular(member.type) && member.path.endsWith("/"));
    if (!isDirectory && !isRegular(member.type) && member.type !== "1" && member.type !== "2")
      return this.#skip(member);
    if (!isRegular(member.type) || isDirectory) {
      if (member.size !== 0) throw malformed(`${toText(member.path)} is not a file but has data`);
    }
    const path = toConfinedName(member.path);
    this.#links.assertNotThrough(path);
    if (path === "" && !isDirectory) throw malformed("a member has no name");
    this.#result.entries += 1;
    if (isDirectory) return this.#addDirectory(path, member.mode);
    await this.#makeParent(path);
    if (member.type === "1") return this.#addCopy(path, toConfinedName(member.link));
    if (member.type === "2") return this.#addLink(path, member.link);
    return this.#addFile(path, member);
  }

  #skip(member: ArchiveMember): void {
    if (member.type === "S" || member.type === "M") {
      throw codedError("unsupported", `tar archive has a sparse or split member: ${toText(member.path)}`);
    }
    if (this.#result.skipped.length < MAX_NAMED_SKIPS) this.#result.skipped.push(toText(member.path));
  }

  async #addDirectory(path: string, mode: number): Promise<void> {
    if (path === "") return;
    await onArchiveName(path, mkdir(this.#at(path), { recursive: true }));
    // Keep the owner's bits: we have to enter the directory to fill and to remove it.
    await chmod(this.#at(path), (mode & 0o777) | 0o700);
  }

  async #addFile(path: string, member: ArchiveMember): Promise<void> {
    const at = this.#at(path);
    const create = () => open(at, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    const handle = await create().catch(async (error: NodeJS.ErrnoException) => {
      if (error.code === "EEXIST" && (await lstat(at)).isFile()) {
        await rm(at);
        return create();
      }
      throw asArchiveError(path, error);
    });
    try {
      for await (const piece of member.data) {
        for (let done = 0; done < piece.length; ) done += (await handle.write(piece, done)).bytesWritten;
      }
      await handle.chmod(member.mode & 0o777);
      if (member.mtime !== undefined && member.mtime <= MAX_MTIME) await handle.utimes(member.mtime, member.mtime);
    } finally {
      await handle.close();
    }
    this.#result.bytes += member.size;
  }

  async #addLink(path: string, target: string): Promise<void> {
    if ((await lstat(this.#at(path)).catch(() => undefined)) !== undefined) {
      throw escapes(path);
    }
    this.#links.add(path, target);
  }

  /** Turns a hard link into a copy: a link to anything but an earlier member would share a host file. */
  async #addCopy(path: string, source: string): Promise<void> {
    const target = this.#links.get(source);
    if (target !== undefined) return this.#addLink(path, target);
    this.#links.assertNotThrough(source);
    const stats = await lstat(this.#at(source)).catch(() => undefined);
    if (!stats?.isFile()) throw malformed(`hard link ${toText(path)} points to no earlier file`);
    this.#spend(stats.size);
    await onArchiveName(
      path,
      copyFile(this.#at(source), this.#at(path), constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE),
    );
    this.#result.bytes += stats.size;
  }

  async #makeParent(path: string): Promise<void> {
    const parent = path.slice(0, Math.max(0, path.lastIndexOf("/")));
    if (parent === this.#lastParent) return;
    await onArchiveName(path, mkdir(this.#at(parent), { recursive: true }));
    this.#lastParent = parent;
  }

  #at(path: string): string | Buffer {
    return toPath(Buffer.concat([Buffer.from(`${this.#root}/`), Buffer.from(path, "latin1")]));
  }

  #spend(bytes: number): void {
    this.#spent += bytes;
    if (this.#spent > this.#maxBytes) {
      throw codedError("limit_exceeded", `tar archive has more than ${this.#maxBytes} bytes`);
    }
  }
}

function isRegular(type: string): boolean {
  return type === "0" || type === "\0" || type === "7";
}

async function onArchiveName<T>(path: string, pending: Promise<T>): Promise<T> {
  return await pending.catch((error: NodeJS.ErrnoException) => {
    throw asArchiveError(path, error);
  });
}

/** Turns a system error about a name into the error about the archive. */
function asArchiveError(path: string, error: NodeJS.ErrnoException): Error {
  const { code } = error;
  if (code === "EEXIST" || code === "ENOTDIR" || code === "EISDIR") return malformed(`${toText(path)} occurs twice`);
  if (code === "ENAMETOOLONG") {
    return codedError("invalid_path", `path is too long for this system: ${toText(path)}`, error);
  }
  return error;
}

/** The permission bits of an empty directory; undefined if nothing exists; `conflict` otherwise. */
async function modeOfVacant(target: string): Promise<number | undefined> {
  const stats = await lstat(target).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (stats === undefined) return undefined;
  if (!stats.isDirectory() || (await readdir(target)).length > 0) {
    throw codedError("conflict", `${target} exists and is not an empty directory`);
  }
  return stats.mode & 0o7777;
}

async function moveInto(root: string, target: string): Promise<void> {
  try {
    if (process.platform === "win32") await rmdir(target).catch(() => undefined);
    await rename(root, target);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    if (!["EEXIST", "ENOTEMPTY", "ENOTDIR"].includes(code)) throw error;
    throw codedError("conflict", `something else wrote to ${target} meanwhile`, error);
  }
}

async function removeEmpty(from: string, upTo: string): Promise<void> {
  for (let at = from; !relative(upTo, at).startsWith(".."); at = dirname(at)) {
    const removed = await rmdir(at).then(
      () => true,
      () => false,
    );
    if (!removed) return;
  }
}
