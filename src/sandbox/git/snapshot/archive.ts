import { open } from "node:fs/promises";
import { SandboxError } from "../../../../contracts/errors.js";
import { encodeTarMember, TAR_BLOCK, tarPadding } from "../../../util/tar/tar-encode.js";
import { toConfinedName } from "../../../util/tar/tar-names.js";
import { readTar } from "../../../util/tar/tar-read.js";
import { MAX_IMPORT_BYTES } from "../../types.js";

const MAX_ENTRIES = 5_000_000;
const TYPES: Readonly<Record<string, "file" | "directory" | "symlink">> = {
  "0": "file",
  "\0": "file",
  "5": "directory",
  "2": "symlink",
};

/**
 * Writes the wanted members of a tar stream to a new archive, and returns how many there were.
 *
 * The stream comes from a sandbox and is untrusted. Only this user can read the archive. Names are bytes in Latin-1 strings. The archive is
 * never too large to be restored.
 */
export async function writeArchive(
  tar: AsyncIterable<Uint8Array>,
  path: string,
  isWanted: (name: string) => boolean,
  maxBytes: number = MAX_IMPORT_BYTES,
): Promise<number> {
  const file = await open(path, "wx", 0o600);
  let size = 0;
  let count = 0;
  const write = async (bytes: Uint8Array): Promise<void> => {
    size += bytes.length;
    if (size > maxBytes) throw new SandboxError("limit_exceeded", `The archive has more than ${maxBytes} bytes`);
    await file.writeFile(bytes);
  };
  try {
    for await (const member of readTar(tar, MAX_ENTRIES)) {
      const name = toConfinedName(member.path);
      const type = TYPES[member.type];
      if (type === undefined) throw new SandboxError("tampered", `The sandbox sent a member of type ${member.type}`);
      if (name === "" || !isWanted(name)) continue;
      count += 1;
      const link = type === "symlink" ? { link: Buffer.from(member.link, "latin1") } : {};
      const { mode, mtime = 0 } = member;
      const length = type === "file" ? member.size : 0;
      await write(encodeTarMember({ path: Buffer.from(name, "latin1"), type, mode, mtime, size: length, ...link }));
      if (type !== "file") continue;
      for await (const piece of member.data) await write(piece);
      await write(tarPadding(length));
    }
    await write(Buffer.alloc(2 * TAR_BLOCK));
    await file.sync();
  } finally {
    await file.close();
  }
  return count;
}

/** Whether a name is in a list, or below a directory in it; directories end with a slash. */
export function isAmong(list: readonly string[]): (name: string) => boolean {
  const names = new Set(list);
  return (name) => {
    if (names.has(name)) return true;
    for (let end = name.length; end > 0; end = name.lastIndexOf("/", end - 1)) {
      if (names.has(`${name.slice(0, end)}/`)) return true;
    }
    return false;
  };
}
