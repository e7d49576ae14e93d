import type { DirectoryEntry, FileStat } from "../../../contracts/types.js";

const TYPES = ["file", "directory", "symlink", "other"] as const;
/** Before the length of a name, with details: u8 type, u16 permission bits, u64 size, i64 time. */
const DETAILS = 19;
const EMPTY = Buffer.alloc(0);

/** The type of a file by the guest's number for it; undefined for a number that means nothing. */
export function typeOf(number: number | undefined): FileStat["type"] | undefined {
  return TYPES[number ?? -1];
}

/** Splits what the guest sends of a directory into its entries, as it comes (`guest/files/list-directory.c`). The guest is untrusted. */
export class EntryRecords {
  readonly entries: DirectoryEntry[] = [];
  readonly names: string[] = [];
  readonly #head: number;
  #rest: Buffer = EMPTY;

  constructor(withDetails: boolean) {
    this.#head = withDetails ? DETAILS : 0;
  }

  /** False if what came can't be part of a list. */
  push(chunk: Uint8Array): boolean {
    const more = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
    const bytes = this.#rest.length === 0 ? more : Buffer.concat([this.#rest, more]);
    let at = 0;
    for (;;) {
      const from = at + this.#head + 1;
      const length = bytes[from - 1];
      if (length === undefined || from + length > bytes.length) break;
      if (!this.#take(bytes, at, bytes.subarray(from, from + length))) return false;
      at = from + length;
    }
    this.#rest = bytes.subarray(at);
    return true;
  }

  /** Whether the last entry is complete. */
  get isWhole(): boolean {
    return this.#rest.length === 0;
  }

  #take(bytes: Buffer, at: number, encoded: Buffer): boolean {
    if (encoded.length === 0 || encoded.includes(0) || encoded.includes(0x2f)) return false;
    const name = encoded.toString("utf8");
    if (this.#head === 0) {
      this.names.push(name);
      return true;
    }
    const type = typeOf(bytes[at]);
    const size = Number(bytes.readBigUInt64LE(at + 3));
    const mode = bytes.readUInt16LE(at + 1);
    if (type === undefined || mode > 0o7777) return false;
    this.entries.push({ name, type, size, mode, mtimeMs: Number(bytes.readBigInt64LE(at + 11)) });
    return true;
  }
}
