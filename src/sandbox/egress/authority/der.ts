/**
 * Just enough DER to write certificates. Node reads certificates but makes none, and a library would be a megabyte or more with its
 * dependencies, in the one place that holds the keys to what a sandbox sends. This can be read in a minute.
 */
type Der = Buffer<ArrayBuffer>;

const UNIVERSAL = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  sequence: 0x30,
  set: 0x31,
};
const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;
const CONTEXT = 0x80;
const CONSTRUCTED = 0x20;

function write(tag: number, content: Uint8Array): Der {
  const { length } = content;
  if (length < 0x80) return Buffer.from([tag, length, ...content]);
  const hex = length.toString(16);
  const size = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, "hex");
  return Buffer.concat([Buffer.from([tag, 0x80 | size.length]), size, content]);
}

/** A sequence of values. */
export function sequence(...values: readonly Uint8Array[]): Der {
  return write(UNIVERSAL.sequence, Buffer.concat(values));
}

/** A set with one value, which needs no order. */
export function setOf(value: Uint8Array): Der {
  return write(UNIVERSAL.set, value);
}

/** A value under a context-specific tag: `constructed` around other values, else with these bytes in place of another type's. */
export function tagged(number: number, content: Uint8Array, kind: "constructed" | "primitive"): Der {
  return write(CONTEXT | number | (kind === "constructed" ? CONSTRUCTED : 0), content);
}

export function boolean(value: boolean): Der {
  return write(UNIVERSAL.boolean, Buffer.from([value ? 0xff : 0]));
}

/** An integer that is not negative, from its bytes, the highest first. */
export function integer(bytes: Uint8Array): Der {
  const start = bytes.findIndex((byte) => byte !== 0);
  const shortest = start === -1 ? Buffer.from([0]) : Buffer.from(bytes.subarray(start));
  return write(UNIVERSAL.integer, (shortest[0] ?? 0) < 0x80 ? shortest : Buffer.concat([Buffer.from([0]), shortest]));
}

/** A string of bits; the last `unused` bits of its last byte don't count. */
export function bits(bytes: Uint8Array, unused = 0): Der {
  return write(UNIVERSAL.bits, Buffer.concat([Buffer.from([unused]), bytes]));
}

export function octets(bytes: Uint8Array): Der {
  return write(UNIVERSAL.octets, bytes);
}

/** An object identifier, such as `2.5.29.17`. */
export function oid(text: string): Der {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  return write(UNIVERSAL.oid, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(value: number): number[] {
  const digits = [value & 0x7f];
  for (let left = value >> 7; left > 0; left >>= 7) digits.unshift(0x80 | (left & 0x7f));
  return digits;
}

export function utf8(text: string): Der {
  return write(UNIVERSAL.utf8, Buffer.from(text, "utf8"));
}

/** A moment, to the second. Certificates have two digits for the year until 2049 and four from then on. */
export function time(moment: Date): Der {
  const digits = moment.toISOString().replace(/\.\d+/, "").replace(/[-:T]/g, "");
  const isShort = moment.getUTCFullYear() < 2050;
  return write(isShort ? UTC_TIME : GENERALIZED_TIME, Buffer.from(isShort ? digits.slice(2) : digits, "latin1"));
}
