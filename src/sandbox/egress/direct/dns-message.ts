/** A question that a program asks its resolver, or why it can't be answered. */
export type DnsQuery =
  | { kind: "question"; name: string | undefined; type: number; class: number }
  | { kind: "malformed" | "not_implemented" };

/** The codes of an answer. */
export const RCODE = { ok: 0, malformed: 1, failed: 2, unknown: 3, notImplemented: 4, refused: 5 } as const;
/** The types and classes that matter here. */
export const TYPE = { a: 1, aaaa: 28, any: 255 } as const;
export const CLASS_IN = 1;

const HEADER_BYTES = 12;
const IS_ANSWER = 0x8000;
const OPCODE = 0x7800;
const RECURSION_DESIRED = 0x0100;
const RECURSION_AVAILABLE = 0x0080;
const MAX_NAME = 255;
const MAX_LABEL = 63;
const LABEL = /^[A-Za-z0-9_-]+$/;
/** Where the name of the question is, for an answer that means the same one. */
const SAME_NAME = 0xc000 | HEADER_BYTES;

/** Reads a query with one question; undefined for what deserves no answer. What follows the question is ignored. */
export function readQuery(bytes: Buffer): DnsQuery | undefined {
  if (bytes.length < HEADER_BYTES) return undefined;
  const flags = bytes.readUInt16BE(2);
  if ((flags & IS_ANSWER) !== 0) return undefined;
  if ((flags & OPCODE) !== 0) return { kind: "not_implemented" };
  const end = endOfName(bytes);
  if (bytes.readUInt16BE(4) !== 1 || end === undefined || end + 4 > bytes.length) return { kind: "malformed" };
  const name = nameAt(bytes, end);
  return { kind: "question", name, type: bytes.readUInt16BE(end), class: bytes.readUInt16BE(end + 2) };
}

/** The answer to a query: a code, and an address for the name of its question. */
export function answerTo(query: Buffer, rcode: number, address?: { value: number; ttl: number }): Buffer {
  const end = endOfName(query);
  const hasQuestion = query.readUInt16BE(4) === 1 && end !== undefined && end + 4 <= query.length;
  const question = hasQuestion ? query.subarray(HEADER_BYTES, end + 4) : Buffer.alloc(0);
  const header = Buffer.alloc(HEADER_BYTES);
  query.copy(header, 0, 0, 2);
  const asked = query.readUInt16BE(2) & (OPCODE | RECURSION_DESIRED);
  header.writeUInt16BE(IS_ANSWER | asked | RECURSION_AVAILABLE | rcode, 2);
  header.writeUInt16BE(hasQuestion ? 1 : 0, 4);
  if (address === undefined || !hasQuestion) return Buffer.concat([header, question]);
  header.writeUInt16BE(1, 6);
  const record = Buffer.alloc(16);
  record.writeUInt16BE(SAME_NAME, 0);
  record.writeUInt16BE(TYPE.a, 2);
  record.writeUInt16BE(CLASS_IN, 4);
  record.writeUInt32BE(address.ttl, 6);
  record.writeUInt16BE(4, 10);
  record.writeUInt32BE(address.value, 12);
  return Buffer.concat([header, question, record]);
}

/** Where the question's type is; undefined for a name that is cut off, too long, or refers to another place. */
function endOfName(bytes: Buffer): number | undefined {
  for (let at = HEADER_BYTES; at < bytes.length && at < HEADER_BYTES + MAX_NAME; ) {
    const length = bytes.readUInt8(at);
    if (length === 0) return at + 1;
    if (length > MAX_LABEL) return undefined;
    at += 1 + length;
  }
  return undefined;
}

/** The name as text; undefined when it is no name of a host, such as one with a dot within a label. */
function nameAt(bytes: Buffer, end: number): string | undefined {
  const labels: string[] = [];
  for (let at = HEADER_BYTES; at < end - 1; ) {
    const length = bytes.readUInt8(at);
    labels.push(bytes.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return labels.length > 0 && labels.every((label) => LABEL.test(label)) ? labels.join(".") : undefined;
}
