import { codedError } from "../coded-error.js";
import { TAR_BLOCK, tarChecksum } from "./tar-encode.js";

/** The plain fields of one header. Names are bytes as a Latin-1 string, one character each. */
export interface TarHeader {
  path: string;
  link: string;
  type: string;
  mode: number;
  size: number;
  /** Seconds since 1970; undefined if the field is not a number. */
  mtime: number | undefined;
}

/** Reads one header block of an untrusted archive; undefined for a block of zeros. */
export function decodeTarHeader(block: Buffer): TarHeader | undefined {
  if (block.every((byte) => byte === 0)) return undefined;
  if (readNumber(block, 148, 8) !== tarChecksum(block)) throw malformed("header checksum does not match");
  const size = readNumber(block, 124, 12);
  const mode = readNumber(block, 100, 8);
  if (size === undefined || mode === undefined) throw malformed("header has a field that is not a number");
  const name = text(block, 0, 100);
  // Only POSIX headers have a prefix; GNU ones have times there.
  const prefix = block.toString("latin1", 257, 263) === "ustar\0" ? text(block, 345, 155) : "";
  return {
    path: prefix === "" ? name : `${prefix}/${name}`,
    link: text(block, 157, 100),
    type: block.toString("latin1", 156, 157),
    mode,
    size: boundedSize(size),
    mtime: readNumber(block, 136, 12),
  };
}

/** Reads the records of a pax header; values are bytes as Latin-1 strings. */
export function decodePax(body: Buffer): Map<string, string> {
  const records = new Map<string, string>();
  for (let at = 0; at < body.length; ) {
    const space = body.indexOf(0x20, at);
    const digits = space === -1 ? "" : body.toString("latin1", at, space);
    const end = /^[1-9]\d{0,8}$/.test(digits) ? at + Number(digits) : 0;
    if (end <= space + 1 || body[end - 1] !== 0x0a) throw malformed("pax record has a wrong length");
    const record = body.toString("latin1", space + 1, end - 1);
    const equals = record.indexOf("=");
    if (equals < 1) throw malformed("pax record has no key");
    records.set(record.slice(0, equals), record.slice(equals + 1));
    at = end;
  }
  return records;
}

/** Reads the size of a pax record: decimal digits, nothing else. */
export function decodePaxSize(value: string): number {
  if (!/^\d{1,19}$/.test(value))
    throw malformed(`pax size is not a number of bytes: ${JSON.stringify(value.slice(0, 40))}`);
  return boundedSize(Number(value));
}

/** The error for an archive that breaks the format. */
export function malformed(what: string): Error {
  return codedError("tampered", `malformed tar archive: ${what}`);
}

/** A field up to its first NUL byte, the way C reads it. */
export function untilNul(field: string): string {
  const end = field.indexOf("\0");
  return end === -1 ? field : field.slice(0, end);
}

function text(block: Buffer, start: number, length: number): string {
  return untilNul(block.toString("latin1", start, start + length));
}

/** Octal digits, or base 256 if the first bit is set; undefined for a negative or invalid number. */
function readNumber(block: Buffer, start: number, length: number): number | undefined {
  const field = block.subarray(start, start + length);
  const first = field[0] ?? 0;
  if (first === 0x80) return Number(`0x${field.subarray(1).toString("hex")}`);
  const digits = /^ *([0-7]*)[ \0]*$/.exec(field.toString("latin1"))?.[1];
  return digits === undefined ? undefined : Number.parseInt(digits || "0", 8);
}

function boundedSize(value: number): number {
  if (value > Number.MAX_SAFE_INTEGER)
    throw codedError("limit_exceeded", `tar archive claims a member of ${value} bytes`);
  return value;
}

/** How many bytes of data and padding follow a header of this size. */
export function paddedSize(size: number): number {
  return Math.ceil(size / TAR_BLOCK) * TAR_BLOCK;
}
