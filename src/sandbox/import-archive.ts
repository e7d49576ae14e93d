import { randomBytes } from "node:crypto";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { runtimeDir } from "../machine/home.js";
import { removeTree } from "../machine/remove-tree.js";
import { unpackTar } from "../util/tar/tar-unpack.js";
import type { Sandbox } from "./types.js";

const MAX_BYTES = 8 * 1024 ** 3;
const GZIP = [0x1f, 0x8b];

/**
 * Unpacks an untrusted tar archive, plain or gzipped, into a directory of a sandbox. It is first unpacked and checked in a private directory of the
 * host: an archive with names or links that lead outside, with devices or with too much of anything changes nothing.
 */
export async function importArchive(sandbox: Sandbox, archive: string, inside: string): Promise<void> {
  // Leftovers with such names are removed when the sandbox is reopened.
  const place = join(runtimeDir(sandbox.id), `import-${randomBytes(6).toString("hex")}`);
  try {
    await check(archive, place);
    await sandbox.refreshFromHost(place, inside);
  } finally {
    await removeTree(place);
  }
}

async function check(archive: string, place: string): Promise<void> {
  const hint = "nothing was changed; list the archive with tar -tvf";
  try {
    const { skipped } = await unpack(archive, place);
    const names = skipped.slice(0, 5).map((name) => JSON.stringify(name));
    if (names.length === 0) return;
    throw new SandboxError(
      "not_regular_file",
      `It contains more than files, directories and links: ${names.join(", ")}`,
    );
  } catch (error) {
    const { code, message } = toSandboxError(error);
    throw new SandboxError(code, `The archive ${archive} was refused: ${message}`, { hint, cause: error });
  }
}

async function unpack(archive: string, place: string): ReturnType<typeof unpackTar> {
  const file = await open(archive);
  try {
    const { buffer } = await file.read(Buffer.alloc(2), 0, 2, 0);
    const bytes = file.createReadStream({ start: 0, autoClose: false });
    if (!buffer.equals(Buffer.from(GZIP))) return await unpackTar(bytes, place, { maxBytes: MAX_BYTES });
    const { createGunzip } = await import("node:zlib");
    const plain = createGunzip();
    const [result] = await Promise.all([unpackTar(plain, place, { maxBytes: MAX_BYTES }), pipeline(bytes, plain)]);
    return result;
  } finally {
    await file.close();
  }
}
