import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, open, readdir, readlink } from "node:fs/promises";
import { assertReadNames } from "./byte-path.js";
import { encodeTarMember, TAR_BLOCK, type TarMember, tarPadding } from "./tar-encode.js";

const CHUNK = 64 * 1024;
const SLASH = Buffer.from("/");
const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;

/** A directory being walked. `base` leads to its entries even if a parent is replaced by a link meanwhile. */
interface Level {
  readonly handle: FileHandle;
  readonly base: Buffer;
  readonly prefix: Buffer;
  readonly names: Buffer[];
}

/** What to pack, and how. */
export interface PackOptions {
  /** Decides about each path below the root; `enter` packs what is below a directory, but not itself. Default: pack all. */
  select?(path: string, isDirectory: boolean): "take" | "enter" | "skip";
  /** Write no times, so that equal files make equal archives. Default false. */
  isTimeless?: boolean;
}

/** One tree of an archive. */
export interface PackedTree {
  hostDir: string;
  /** Directory in the archive to put the tree into. Default: the top. */
  at?: string;
  /** A name at the top of the tree to leave out. */
  except?: string;
}

/**
 * The tree below a host directory as a tar stream: directories, regular files and symbolic links, in byte order.
 * Sockets, FIFOs, devices and files that vanish meanwhile are left out; links are never followed.
 */
export function packDirectory(hostDir: string, opts: PackOptions = {}): AsyncIterable<Uint8Array> {
  return packTrees([{ hostDir }], opts);
}

/** As `packDirectory`, several trees in one stream. */
export function packTrees(trees: readonly PackedTree[], opts: PackOptions = {}): AsyncIterable<Uint8Array> {
  return coalesce(archive(trees, opts));
}

async function* archive(trees: readonly PackedTree[], opts: PackOptions): AsyncGenerator<Buffer> {
  for (const tree of trees) yield* pieces(tree, opts);
  yield Buffer.alloc(2 * TAR_BLOCK);
}

async function* pieces(
  { hostDir, at = "", except }: PackedTree,
  { select, isTimeless = false }: PackOptions,
): AsyncGenerator<Buffer> {
  const toMember = isTimeless ? toTimelessMember : toTimedMember;
  const prefix = Buffer.from(at);
  const top = await openLevel(Buffer.from(hostDir), prefix, 0);
  const stack: Level[] = [except === undefined ? top : { ...top, names: withoutName(top.names, except) }];
  try {
    if (at !== "") yield encodeTarMember(toMember("directory", prefix, await top.handle.stat(), 0));
    for (let level = stack.at(-1); level !== undefined; level = stack.at(-1)) {
      const name = level.names.pop();
      if (name === undefined) {
        stack.pop();
        await level.handle.close();
        continue;
      }
      const source = Buffer.concat([level.base, SLASH, name]);
      const path = level.prefix.length === 0 ? name : Buffer.concat([level.prefix, SLASH, name]);
      const stats = await unlessGone(lstat(source));
      const selection = select?.(path.toString(), stats?.isDirectory() === true) ?? "take";
      if (selection === "skip") continue;
      if (stats?.isSymbolicLink()) {
        const link = await unlessGone(readlink(source, { encoding: "buffer" }));
        if (link !== undefined) yield encodeTarMember(toMember("symlink", path, stats, 0, Buffer.from(link)));
      } else if (stats?.isFile()) {
        yield* packFile(source, path, toMember);
      } else if (stats?.isDirectory()) {
        const next = await unlessGone(openLevel(source, path, O_NOFOLLOW));
        if (next === undefined) continue;
        stack.push(next);
        if (selection === "take") yield encodeTarMember(toMember("directory", path, stats, 0));
      }
    }
  } finally {
    for (const level of stack) await level.handle.close();
  }
}

function withoutName(names: readonly Buffer[], left: string): Buffer[] {
  return names.filter((name) => !name.equals(Buffer.from(left)));
}

async function openLevel(path: Buffer, prefix: Buffer, flags: number): Promise<Level> {
  const handle = await open(path, O_RDONLY | O_DIRECTORY | flags);
  try {
    const base = process.platform === "linux" ? Buffer.from(`/proc/self/fd/${handle.fd}`) : path;
    const names = await readdir(base, { encoding: "buffer" });
    assertReadNames(names);
    return { handle, base, prefix, names: names.sort((a, b) => Buffer.compare(b, a)) };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function* packFile(source: Buffer, path: Buffer, toMember: typeof toTimedMember): AsyncGenerator<Buffer> {
  // Without O_NONBLOCK, opening a FIFO that has replaced the file would block forever.
  const handle = await unlessGone(open(source, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  if (handle === undefined) return;
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) return;
    yield encodeTarMember(toMember("file", path, stats, stats.size));
    yield* exactly(handle, stats.size);
    yield tarPadding(stats.size);
  } finally {
    await handle.close();
  }
}

/** Exactly the `size` bytes of the header: cuts a file that has grown, pads one that has shrunk. */
async function* exactly(handle: FileHandle, size: number): AsyncGenerator<Buffer> {
  for (let left = size; left > 0; ) {
    const buffer = Buffer.allocUnsafe(Math.min(left, CHUNK));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, null);
    const piece = bytesRead === 0 ? buffer.fill(0) : buffer.subarray(0, bytesRead);
    left -= piece.length;
    yield piece;
  }
}

function toTimedMember(type: TarMember["type"], path: Buffer, stats: Stats, size: number, link?: Buffer): TarMember {
  const member = { type, path, size, mode: stats.mode, mtime: stats.mtimeMs / 1000 };
  return link === undefined ? member : { ...member, link };
}

function toTimelessMember(...args: Parameters<typeof toTimedMember>): TarMember {
  return { ...toTimedMember(...args), mtime: 0 };
}

async function unlessGone<T>(pending: Promise<T>): Promise<T | undefined> {
  try {
    return await pending;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    if (["ENOENT", "ENOTDIR", "ELOOP", "EINVAL", "ENXIO"].includes(code)) return undefined;
    throw error;
  }
}

/** Joins small chunks, so that a tree of tiny files does not become a flood of tiny messages. */
async function* coalesce(source: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array> {
  let held: Buffer[] = [];
  let size = 0;
  for await (const piece of source) {
    held.push(piece);
    size += piece.length;
    if (size < CHUNK) continue;
    yield Buffer.concat(held, size);
    held = [];
    size = 0;
  }
  if (size > 0) yield Buffer.concat(held, size);
}
