import { isUtf8 } from "node:buffer";

/** The unit of a tar archive, in bytes. */
export const TAR_BLOCK = 512;

/** The largest size that fits the octal field of a header: one byte under 8 GiB. */
const MAX_OCTAL = 0o77777777777;
const NAME_BYTES = 100;

/** One member to write. Paths are bytes, because names need not be UTF-8. */
export interface TarMember {
  /** Relative, without a trailing slash. */
  path: Buffer;
  type: "file" | "directory" | "symlink";
  mode: number;
  /** Seconds since 1970. */
  mtime: number;
  /** Bytes of data that follow; 0 except for files. */
  size: number;
  link?: Buffer;
}

const TYPE_FLAGS = { file: "0", directory: "5", symlink: "2" } as const;

/** The header of a member, after a pax record if the plain fields are too small. */
export function encodeTarMember(member: TarMember): Buffer {
  const path = member.type === "directory" ? Buffer.concat([member.path, Buffer.from("/")]) : member.path;
  const link = member.link ?? Buffer.alloc(0);
  const records: Buffer[] = [];
  if (needsRecord(path)) records.push(paxRecord("path", path));
  if (needsRecord(link)) records.push(paxRecord("linkpath", link));
  if (records.length > 0 && !(isUtf8(path) && isUtf8(link)))
    records.unshift(paxRecord("hdrcharset", Buffer.from("BINARY")));
  const large = member.size > MAX_OCTAL;
  if (large) records.push(paxRecord("size", Buffer.from(String(member.size))));
  const header = encodeHeader(path, TYPE_FLAGS[member.type], { ...member, size: large ? 0 : member.size, link });
  return records.length === 0 ? header : Buffer.concat([encodePax(Buffer.concat(records), member.mtime), header]);
}

/** The zero bytes that pad `size` bytes of data to a whole block. */
export function tarPadding(size: number): Buffer {
  return Buffer.alloc((TAR_BLOCK - (size % TAR_BLOCK)) % TAR_BLOCK);
}

function needsRecord(field: Buffer): boolean {
  // Bytes that are not UTF-8 go into the plain field if they fit: every reader takes them unchanged.
  return field.length > NAME_BYTES || (isUtf8(field) && field.some((byte) => byte > 0x7f));
}

function encodePax(body: Buffer, mtime: number): Buffer {
  const fields = { mode: 0o644, mtime, size: body.length, link: Buffer.alloc(0) };
  return Buffer.concat([encodeHeader(Buffer.from("PaxHeaders/next"), "x", fields), body, tarPadding(body.length)]);
}

/** `<length> <key>=<value>\n`, where the length counts its own digits. */
function paxRecord(key: string, value: Buffer): Buffer {
  const bare = key.length + value.length + 3;
  let length = bare + String(bare).length;
  length = bare + String(length).length;
  return Buffer.concat([Buffer.from(`${length} ${key}=`), value, Buffer.from("\n")]);
}

function encodeHeader(
  path: Buffer,
  type: string,
  fields: { mode: number; mtime: number; size: number; link: Buffer },
): Buffer {
  const block = Buffer.alloc(TAR_BLOCK);
  path.copy(block, 0, 0, NAME_BYTES);
  block.write(octal(fields.mode & 0o777, 8), 100, "latin1");
  block.write(octal(0, 8), 108, "latin1");
  block.write(octal(0, 8), 116, "latin1");
  block.write(octal(fields.size, 12), 124, "latin1");
  block.write(octal(Math.min(Math.max(0, Math.floor(fields.mtime)), MAX_OCTAL), 12), 136, "latin1");
  block.write(" ".repeat(8), 148, "latin1");
  block.write(type, 156, "latin1");
  fields.link.copy(block, 157, 0, NAME_BYTES);
  block.write("ustar\u000000", 257, "latin1");
  block.write(`${octal(tarChecksum(block), 7)} `, 148, "latin1");
  return block;
}

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, "0")}\0`;
}

/** The sum of a header's bytes, its checksum field counted as spaces. */
export function tarChecksum(block: Uint8Array): number {
  let sum = 8 * 0x20;
  for (let i = 0; i < TAR_BLOCK; i += 1) if (i < 148 || i >= 156) sum += block[i] ?? 0;
  return sum;
}
