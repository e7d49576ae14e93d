import { ByteReader } from "../byte-reader.js";
import { codedError } from "../coded-error.js";
import {
  decodePax,
  decodePaxSize,
  decodeTarHeader,
  malformed,
  paddedSize,
  type TarHeader,
  untilNul,
} from "./tar-decode.js";
import { TAR_BLOCK } from "./tar-encode.js";

const MAX_META_BYTES = 1024 * 1024;
const MAX_TRAILING_BYTES = 1024 * 1024;
const GNU_NAME = { L: "GNU.longname", K: "GNU.longlink" } as const;

/** One member of an archive being read. Unread `data` is skipped. */
export interface ArchiveMember extends TarHeader {
  readonly data: AsyncIterable<Buffer>;
}

/** The members of an untrusted archive, with long names and pax records applied; throws on anything ambiguous. */
export async function* readTar(stream: AsyncIterable<Uint8Array>, maxEntries: number): AsyncGenerator<ArchiveMember> {
  const reader = new ByteReader(stream);
  try {
    let extra = new Map<string, string>();
    for (let headers = 1; ; headers += 1) {
      const header = decodeTarHeader(await reader.exactly(TAR_BLOCK));
      if (header === undefined) return await expectEnd(reader, extra);
      if (headers > maxEntries) throw codedError("limit_exceeded", `tar archive has more than ${maxEntries} entries`);
      if ("xgLK".includes(header.type)) {
        extra = applyMeta(extra, header.type, await readMeta(reader, header.size));
        continue;
      }
      yield* readMember(reader, toMember(header, extra));
      extra = new Map();
    }
  } finally {
    await reader.close();
  }
}

async function* readMember(reader: ByteReader, header: TarHeader): AsyncGenerator<ArchiveMember> {
  let left = paddedSize(header.size);
  const data = async function* (): AsyncGenerator<Buffer> {
    for await (const piece of reader.pieces(header.size)) {
      left -= piece.length;
      yield piece;
    }
  };
  yield { ...header, data: data() };
  await reader.skip(left);
}

async function readMeta(reader: ByteReader, size: number): Promise<Buffer> {
  if (size > MAX_META_BYTES) throw codedError("limit_exceeded", `tar archive has a name record of ${size} bytes`);
  return (await reader.exactly(paddedSize(size))).subarray(0, size);
}

function applyMeta(extra: Map<string, string>, type: string, body: Buffer): Map<string, string> {
  if (type === "L" || type === "K") {
    return new Map([...extra, [GNU_NAME[type], untilNul(body.toString("latin1"))]]);
  }
  const records = decodePax(body);
  const sparse = [...records.keys()].find((key) => key.startsWith("GNU.sparse"));
  if (sparse !== undefined) throw codedError("unsupported", `tar archive has a sparse member (${sparse})`);
  if (type === "x") return new Map([...extra, ...records]);
  const global = ["path", "linkpath", "size"].find((key) => records.has(key));
  if (global !== undefined) throw malformed(`global pax record sets ${global}`);
  return extra;
}

function toMember(header: TarHeader, extra: ReadonlyMap<string, string>): TarHeader {
  const size = extra.get("size");
  return {
    ...header,
    path: extra.get("path") || extra.get(GNU_NAME.L) || header.path,
    link: extra.get("linkpath") || extra.get(GNU_NAME.K) || header.link,
    size: size === undefined ? header.size : decodePaxSize(size),
  };
}

/** Expects a second block of zeros, and then nothing but zeros. */
async function expectEnd(reader: ByteReader, extra: ReadonlyMap<string, string>): Promise<void> {
  if (extra.size > 0) throw malformed("a name record is at the end");
  const second = await reader.exactly(TAR_BLOCK);
  if (!second.every((byte) => byte === 0)) throw malformed("data after a block of zeros");
  for (let trailing = 0; ; ) {
    const piece = await reader.upTo(TAR_BLOCK);
    if (piece === undefined) return;
    trailing += piece.length;
    if (trailing > MAX_TRAILING_BYTES || !piece.every((byte) => byte === 0)) throw malformed("data after its end");
  }
}
