/** The first bytes of a tunnel: too few (`atLeast` are needed), not TLS, or a hello that names no server, names one, or is malformed. */
export type ClientHello =
  | { kind: "more"; atLeast: number }
  | { kind: "other" }
  | { kind: "unnamed" }
  | { kind: "named"; name: string }
  | { kind: "malformed" };

const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
/** A hello has a few thousand bytes at most. */
const MAX_BYTES = 32 << 10;
const MALFORMED: ClientHello = { kind: "malformed" };

/** Finds the server name in a TLS hello, which may be spread over several records. */
export function readHello(bytes: Buffer): ClientHello {
  if (bytes.length === 0) return { kind: "more", atLeast: 1 };
  if (bytes[0] !== HANDSHAKE) return { kind: "other" };
  const pieces: Buffer[] = [];
  let held = 0;
  let wanted: number | undefined;
  for (let at = 0; ; ) {
    const record = bytes.subarray(at);
    if ((record.length > 0 && record[0] !== HANDSHAKE) || (record.length > 1 && record[1] !== 3)) return MALFORMED;
    if (record.length < 5) return more(at + Math.min(record.length + 1, 5));
    const length = record.readUInt16BE(3);
    if (length === 0) return MALFORMED;
    const piece = record.subarray(5, 5 + length);
    pieces.push(piece);
    held += piece.length;
    at += 5 + length;
    if (wanted === undefined && held >= 4) {
      const start = Buffer.concat(pieces);
      if (start[0] !== CLIENT_HELLO) return MALFORMED;
      wanted = start.readUIntBE(1, 3) + 4;
    }
    if (at > bytes.length) return more(at);
    // Nothing may follow a hello in its record: the server has not answered yet.
    if (wanted !== undefined && held > wanted) return MALFORMED;
    if (held === wanted) return readExtensions(Buffer.concat(pieces).subarray(4));
  }
}

function more(atLeast: number): ClientHello {
  return atLeast > MAX_BYTES ? MALFORMED : { kind: "more", atLeast };
}

function readExtensions(hello: Buffer): ClientHello {
  try {
    const fields = new Fields(hello);
    fields.take(34); // version and random
    fields.vector(1);
    fields.vector(2);
    fields.vector(1);
    if (fields.isEmpty) return { kind: "unnamed" };
    const extensions = new Fields(fields.vector(2));
    if (!fields.isEmpty) return MALFORMED;
    let name: string | undefined;
    while (!extensions.isEmpty) {
      const type = extensions.number(2);
      const body = extensions.vector(2);
      if (type !== SERVER_NAME) continue;
      if (name !== undefined) return MALFORMED;
      name = readName(body);
    }
    return name === undefined ? { kind: "unnamed" } : { kind: "named", name };
  } catch (error) {
    if (error instanceof RangeError) return MALFORMED;
    throw error;
  }
}

/** The one name of a list; a `RangeError` for a list of any other shape. */
function readName(extension: Buffer): string {
  const list = new Fields(extension);
  const names = new Fields(list.vector(2));
  const type = names.number(1);
  const name = names.vector(2).toString("latin1");
  if (type !== 0 || !names.isEmpty || !list.isEmpty) throw new RangeError("the list has not one name");
  return name;
}

/** Reads the fields of a message one after the other; a `RangeError` beyond its end. */
class Fields {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isEmpty(): boolean {
    return this.#at >= this.#bytes.length;
  }

  take(count: number): Buffer {
    if (this.#at + count > this.#bytes.length) throw new RangeError("the message ends within a field");
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  number(width: number): number {
    return this.take(width).readUIntBE(0, width);
  }

  vector(width: number): Buffer {
    return this.take(this.number(width));
  }
}
