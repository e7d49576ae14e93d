import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect } from "vitest";
import { type UnpackLimits, type UnpackResult, unpackTar } from "../../../src/util/tar/tar-unpack.js";

export interface Fields {
  type?: string;
  data?: string | Buffer;
  link?: string;
  mode?: string;
  /** The twelve bytes of the size field, instead of the size of `data`. */
  size?: Buffer | string;
  magic?: string;
}

/** One header, byte by byte, and its data. */
export function member(name: string, fields: Fields = {}): Buffer {
  const data = Buffer.from(fields.data ?? "");
  const block = Buffer.alloc(512);
  block.write(name, 0, 100, "latin1");
  block.write(fields.mode ?? "0000644\0", 100, "latin1");
  block.write("0000000\x000000000\0", 108, "latin1");
  const size = fields.size ?? `${data.length.toString(8).padStart(11, "0")}\0`;
  (typeof size === "string" ? Buffer.from(size, "latin1") : size).copy(block, 124, 0, 12);
  block.write("00000000001\0", 136, "latin1");
  block.write(" ".repeat(8), 148, "latin1");
  block.write(fields.type ?? "0", 156, "latin1");
  block.write(fields.link ?? "", 157, 100, "latin1");
  block.write(fields.magic ?? "ustar\u000000", 257, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return Buffer.concat([block, data, Buffer.alloc((512 - (data.length % 512)) % 512)]);
}

/** Extended header records, of the next member or, as type `g`, of all. */
export function pax(records: Record<string, string>, type = "x"): Buffer {
  const lines = Object.entries(records).map(([key, value]) => {
    const rest = ` ${key}=${value}\n`;
    const digits = String(rest.length + 2).length;
    return `${rest.length + digits}${rest}`;
  });
  return member("pax", { type, data: Buffer.from(lines.join(""), "latin1") });
}

/** The two blocks that end an archive. */
export const END: Buffer = Buffer.alloc(1024);

let dir: string;

/** Gives each test of a file its own directory, with a file beside the target that must stay as it is. */
export function useScratch(): void {
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "glovebox-hostile-"));
    await writeFile(join(dir, "victim"), "untouched");
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));
}

export const scratch = (...parts: string[]): string => join(dir, ...parts);
export const out = (...parts: string[]): string => scratch("parent", "out", ...parts);

/** Unpacks these bytes to `out()`. */
export async function unpack(parts: Buffer[], limits?: UnpackLimits): Promise<UnpackResult> {
  async function* stream(): AsyncGenerator<Uint8Array> {
    for (const part of parts) yield part;
  }
  return await unpackTar(stream(), out(), limits);
}

/** Expects a refusal after an honest first member, and that nothing at all is left of either. */
export async function expectRefused(parts: Buffer[], code: string, limits?: UnpackLimits): Promise<void> {
  await expect(unpack([member("before", { data: "x" }), ...parts], limits)).rejects.toMatchObject({ code });
  expect(await readdir(dir)).toEqual(["victim"]);
  expect(await readFile(scratch("victim"), "utf8")).toBe("untouched");
}

/** Makes every header's checksum true again after its bytes were changed. */
export function mendChecksums(bytes: Buffer): void {
  for (let at = 0; at < bytes.length; at += 512) {
    const block = bytes.subarray(at, at + 512);
    if (block.toString("latin1", 257, 262) !== "ustar") continue;
    block.write(" ".repeat(8), 148, "latin1");
    block.write(
      `${block
        .reduce((total, byte) => total + byte, 0)
        .toString(8)
        .padStart(6, "0")}\0 `,
      148,
      "latin1",
    );
  }
}
