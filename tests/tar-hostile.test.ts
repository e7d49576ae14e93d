import { lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type UnpackLimits, type UnpackResult, unpackTar } from "../src/util/tar-unpack.js";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "glovebox-hostile-"));
  await writeFile(join(dir, "victim"), "untouched");
});
afterEach(() => rm(dir, { recursive: true, force: true }));

interface Fields {
  type?: string;
  data?: string | Buffer;
  link?: string;
  mode?: string;
  /** The twelve bytes of the size field, instead of the size of `data`. */
  size?: Buffer | string;
  magic?: string;
}

/** One header, byte by byte, and its data. */
function member(name: string, fields: Fields = {}): Buffer {
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

function pax(records: Record<string, string>, type = "x"): Buffer {
  const lines = Object.entries(records).map(([key, value]) => {
    const rest = ` ${key}=${value}\n`;
    const digits = String(rest.length + 2).length;
    return `${rest.length + digits}${rest}`;
  });
  return member("pax", { type, data: Buffer.from(lines.join(""), "latin1") });
}

const END = Buffer.alloc(1024);
const out = (...parts: string[]): string => join(dir, "parent", "out", ...parts);

async function unpack(parts: Buffer[], limits?: UnpackLimits): Promise<UnpackResult> {
  async function* stream(): AsyncGenerator<Uint8Array> {
    for (const part of parts) yield part;
  }
  return await unpackTar(stream(), out(), limits);
}

async function expectRefused(parts: Buffer[], code: string, limits?: UnpackLimits): Promise<void> {
  await expect(unpack([member("before", { data: "x" }), ...parts], limits)).rejects.toMatchObject({ code });
  expect(await readdir(dir)).toEqual(["victim"]);
  expect(await readFile(join(dir, "victim"), "utf8")).toBe("untouched");
}

describe("a hostile archive: names", () => {
  test.each(["../x", "a/../../x", "a/..", "..", "/abs", "//abs", "./../x", "a/../b"])("%j is refused", async (name) => {
    await expectRefused([member(name, { data: "bad" }), END], "path_confinement");
    await expectRefused([member(`${name}/`, { type: "5" }), END], "path_confinement");
    await expectRefused([member(name, { type: "2", link: "before" }), END], "path_confinement");
    await expectRefused([member(name, { type: "1", link: "before" }), END], "path_confinement");
  });

  test("the refusal has the words of every other one", async () => {
    await expect(unpack([member("../x"), END])).rejects.toThrow(
      "path confinement violation: ../x is outside base directory",
    );
  });

  test("a pax path is judged like a plain one", async () => {
    await expectRefused([pax({ path: "../x" }), member("fine"), END], "path_confinement");
    await expectRefused([pax({ path: "/etc/x" }), member("fine"), END], "path_confinement");
  });

  test("a GNU long name is judged like a plain one", async () => {
    await expectRefused([member("L", { type: "L", data: "../x\0" }), member("fine"), END], "path_confinement");
  });

  test("a ustar prefix is judged with the name", async () => {
    const block = member("x");
    block.write("../..", 345, "latin1");
    block.write(" ".repeat(8), 148, "latin1");
    block.write(
      `${block
        .reduce((total, byte) => total + byte, 0)
        .toString(8)
        .padStart(6, "0")}\0 `,
      148,
      "latin1",
    );
    await expectRefused([block, END], "path_confinement");
  });

  test("a NUL byte in a pax path is refused, and not read as its end", async () => {
    await expectRefused([pax({ path: "fine\0/../../x" }), member("fine"), END], "invalid_path");
  });

  test("a NUL byte in a pax link is refused", async () => {
    await expectRefused([pax({ linkpath: "a\0b" }), member("l", { type: "2" }), END], "invalid_path");
  });

  test("no name at all is refused", async () => {
    await expectRefused([member(""), END], "invalid_path");
    await expectRefused([member("."), END], "tampered");
  });

  test("names too long for the system are refused", async () => {
    await expectRefused([pax({ path: "n".repeat(256) }), member("x"), END], "invalid_path");
    await expectRefused([pax({ path: "n/".repeat(2500) }), member("x"), END], "invalid_path");
    await expectRefused(
      [pax({ path: `${"n".repeat(200)}/`.repeat(20) + "n".repeat(70) }), member("x"), END],
      "invalid_path",
    );
  });

  test("names that mean something elsewhere are plain names here", async () => {
    await unpack([member("..\\x", { data: "1" }), member("C:y", { data: "2" }), member("...", { data: "3" }), END]);
    expect(await readdir(out())).toEqual(["...", "..\\x", "C:y"]);
  });
});

describe("a hostile archive: links", () => {
  test.each([
    ["/etc/passwd"],
    [".."],
    ["../victim"],
    ["a/../../victim"],
    ["./.././x"],
    [`${"a/".repeat(15)}${"../".repeat(16)}x`],
  ])("a link to %j is refused", async (link) => {
    await expectRefused([member("l", { type: "2", link }), END], "path_confinement");
  });

  test("a link that leads out only by way of another one is refused", async () => {
    await expectRefused(
      [
        member("d/", { type: "5" }),
        member("d/up", { type: "2", link: ".." }),
        member("x", { type: "2", link: "d/up/.." }),
        END,
      ],
      "path_confinement",
    );
  });

  test("so is one that comes before the other, and a longer chain", async () => {
    await expectRefused(
      [
        member("x", { type: "2", link: "a/b/c/up/../../../.." }),
        member("a/b/c/up", { type: "2", link: "../../.." }),
        END,
      ],
      "path_confinement",
    );
  });

  test("a pax link target and a GNU long link are judged too", async () => {
    await expectRefused(
      [pax({ linkpath: "../victim" }), member("l", { type: "2", link: "ok" }), END],
      "path_confinement",
    );
    const long = member("K", { type: "K", data: "../victim\0" });
    await expectRefused([long, member("l", { type: "2", link: "ok" }), END], "path_confinement");
  });

  test.each([
    ["a file", "0"],
    ["a directory", "5"],
    ["a link", "2"],
    ["a hard link", "1"],
  ])("%s through an earlier link is refused", async (_what, type) => {
    const entry = member("l/x", { type, ...(type === "0" ? { data: "bad" } : {}), link: "before" });
    await expectRefused([member("l", { type: "2", link: "." }), entry, END], "path_confinement");
  });

  test("a file in the place of an earlier link is refused", async () => {
    await expectRefused(
      [member("l", { type: "2", link: "before" }), member("l", { data: "bad" }), END],
      "path_confinement",
    );
  });

  test("a link in the place of an earlier file or directory is refused", async () => {
    await expectRefused([member("before", { type: "2", link: "x" }), END], "path_confinement");
    await expectRefused([member("d/x"), member("d", { type: "2", link: "." }), END], "path_confinement");
  });

  test("links that stay inside, dangle or go in circles are kept", async () => {
    await unpack([
      member("a/b/", { type: "5" }),
      member("a/b/up", { type: "2", link: "../../f" }),
      member("loop", { type: "2", link: "loop" }),
      member("ping", { type: "2", link: "pong" }),
      member("pong", { type: "2", link: "ping" }),
      member("f", { data: "found" }),
      END,
    ]);
    expect(await readFile(out("a/b/up"), "utf8")).toBe("found");
    expect(await readlink(out("loop"))).toBe("loop");
    expect(await readlink(out("pong"))).toBe("ping");
  });

  test("a link without a target is refused", async () => {
    await expectRefused([member("l", { type: "2" }), END], "invalid_path");
  });

  test.each(["../victim", "/etc/passwd", "a/../../victim"])("a hard link to %j is refused", async (link) => {
    await expectRefused([member("h", { type: "1", link }), END], "path_confinement");
  });

  test("a hard link to nothing, to a directory or through a link is refused", async () => {
    await expectRefused([member("h", { type: "1", link: "later" }), member("later"), END], "tampered");
    await expectRefused([member("d/", { type: "5" }), member("h", { type: "1", link: "d" }), END], "tampered");
    const through = [member("l", { type: "2", link: "." }), member("h", { type: "1", link: "l/before" }), END];
    await expectRefused(through, "path_confinement");
  });

  test("a hard link to a link is judged at its own place", async () => {
    const inside = member("d/l", { type: "2", link: "../before" });
    await expectRefused([inside, member("h", { type: "1", link: "d/l" }), END], "path_confinement");
  });
});

describe("a hostile archive: kinds and bits", () => {
  test.each([
    ["character device", "3"],
    ["block device", "4"],
    ["FIFO", "6"],
    ["unknown kind", "Z"],
  ])("a %s is skipped and named", async (_what, type) => {
    const result = await unpack([member("odd", { type }), member("fine", { data: "ok" }), END]);
    expect(result).toEqual({ entries: 1, bytes: 2, skipped: ["odd"] });
    expect(await readdir(out())).toEqual(["fine"]);
  });

  test("the data of a skipped member is passed over", async () => {
    const result = await unpack([member("odd", { type: "Z", data: "x".repeat(700) }), member("fine"), END]);
    expect(result).toMatchObject({ entries: 1, skipped: ["odd"] });
  });

  test("setuid, setgid and sticky bits are stripped", async () => {
    await unpack([member("s", { mode: "0007755\0" }), member("d/", { type: "5", mode: "0007777\0" }), END]);
    expect((await lstat(out("s"))).mode & 0o7777).toBe(0o755);
    expect((await lstat(out("d"))).mode & 0o7777).toBe(0o777);
  });

  test("a directory nobody may enter is still filled, and the owner may take it away", async () => {
    await unpack([member("d/", { type: "5", mode: "0000000\0" }), member("d/x", { data: "in" }), END]);
    expect(await readFile(out("d/x"), "utf8")).toBe("in");
    expect((await lstat(out("d"))).mode & 0o777).toBe(0o700);
  });

  test("sparse and split members, whose data is not the file, are refused", async () => {
    await expectRefused([member("s", { type: "S" }), END], "unsupported");
    await expectRefused([member("s", { type: "M" }), END], "unsupported");
    await expectRefused([pax({ "GNU.sparse.major": "1" }), member("s"), END], "unsupported");
  });

  test.each(["1", "2", "5"])("kind %s with data, which two readers read differently, is refused", async (type) => {
    await expectRefused([member("d", { type, link: "before", data: "hidden" }), END], "tampered");
  });
});

describe("a hostile archive: sizes and shape", () => {
  const binary = (...bytes: number[]): Buffer => Buffer.concat([Buffer.from(bytes), Buffer.alloc(12)]).subarray(0, 12);
  test.each([
    ["-1 in octal", "-0000000001\0", "tampered"],
    ["letters", "0000000xyz \0", "tampered"],
    ["digits 8 and 9", "00000000089\0", "tampered"],
    ["-1 in base 256", Buffer.alloc(12, 0xff), "tampered"],
    ["8 EB in base 256", binary(0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), "limit_exceeded"],
    ["the largest in base 256", Buffer.concat([Buffer.from([0x80]), Buffer.alloc(11, 0xff)]), "limit_exceeded"],
    ["64 GiB", binary(0x80, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0), "limit_exceeded"],
  ])("a size of %s is refused", async (_what, size, code) => {
    await expectRefused([member("x", { size }), END], code);
  });

  test("a small size in base 256 is understood", async () => {
    const size = binary(0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3);
    expect(await unpack([member("x", { size, data: "abc" }), END])).toMatchObject({ bytes: 3 });
  });

  test.each(["-1", "1e3", "0x10", " 3", "99999999999999999999"])("a pax size of %j is refused", async (size) => {
    await expectRefused([pax({ size }), member("x", { data: "abc" }), END], "tampered");
  });

  test("a pax size counts over the header's", async () => {
    await unpack([pax({ size: "3" }), member("x", { data: "abc", size: "00000000000\0" }), END]);
    expect(await readFile(out("x"), "utf8")).toBe("abc");
    await rm(out(), { recursive: true });
    await rm(join(dir, "parent"), { recursive: true });
    await expectRefused([pax({ size: "9007199254740993" }), member("x"), END], "limit_exceeded");
  });

  test("more bytes than allowed are refused before they are read", async () => {
    await expectRefused([member("x", { data: "abc" }), END], "limit_exceeded", { maxBytes: 3 });
    expect(await unpack([member("x", { data: "abc" }), END], { maxBytes: 3 })).toMatchObject({ bytes: 3 });
  });

  test("copies by hard links count", async () => {
    const copies = [member("h", { type: "1", link: "before" }), member("i", { type: "1", link: "before" }), END];
    await expectRefused(copies, "limit_exceeded", { maxBytes: 2 });
  });

  test("skipped data counts", async () => {
    await expectRefused([member("x", { type: "Z", data: "abcd" }), END], "limit_exceeded", { maxBytes: 4 });
  });

  test("more entries than allowed are refused, headers that only describe included", async () => {
    await expectRefused([member("x"), member("y"), END], "limit_exceeded", { maxEntries: 2 });
    await expectRefused([pax({ a: "b" }), pax({ a: "b" }), member("x"), END], "limit_exceeded", { maxEntries: 3 });
  });

  test("an endless stream of headers ends at the limit, and its source is told", async () => {
    let given = 0;
    let told = false;
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) {
          given += 1;
          yield pax({ comment: "again" });
        }
      } finally {
        told = true;
      }
    }
    await expect(unpackTar(endless(), out(), { maxEntries: 50 })).rejects.toMatchObject({ code: "limit_exceeded" });
    expect(given).toBe(51);
    expect(told).toBe(true);
  });

  test("a name record of gigabytes is refused before it is read", async () => {
    await expectRefused([member("x", { type: "x", size: "07777777777\0" }), END], "limit_exceeded");
    await expectRefused([member("L", { type: "L", size: "07777777777\0" }), END], "limit_exceeded");
  });

  test.each([
    ["no length", "path=x\n"],
    ["a length beyond the record", "99 path=x\n"],
    ["a length inside the record", "5 path=x\n"],
    ["a length of zero", "0 path=x\n"],
    ["no line end", "9 path=xy"],
    ["no key", "5 =x\n"],
    ["no equals sign", "8 pathx\n"],
  ])("a pax record with %s is refused", async (_what, data) => {
    await expectRefused([member("pax", { type: "x", data }), member("x"), END], "tampered");
  });

  test("a global pax record may comment, but not rename everything", async () => {
    await expectRefused([pax({ path: "y" }, "g"), member("x"), END], "tampered");
    await expectRefused([pax({ size: "0" }, "g"), member("x"), END], "tampered");
    expect(await unpack([pax({ comment: "abc" }, "g"), member("x"), END])).toMatchObject({ entries: 1 });
  });

  test("a wrong checksum is refused", async () => {
    const block = member("x");
    block[0] = 0x79;
    await expectRefused([block, END], "tampered");
  });

  test.each([
    ["in a header", [member("x").subarray(0, 300)]],
    ["in the data", [member("x", { data: "y".repeat(600) }).subarray(0, 900)]],
    ["in the padding", [member("x", { data: "y" }).subarray(0, 600)]],
    ["before the end mark", [member("x")]],
    ["in the end mark", [member("x"), Buffer.alloc(512)]],
    ["in a name record", [pax({ path: "y" }).subarray(0, 515)]],
  ])("one that ends %s is refused", async (_where, parts) => {
    await expectRefused(parts, "tampered");
  });

  test("nothing but zeros may follow the end", async () => {
    await expectRefused([END, member("late", { data: "x" })], "tampered");
    await expectRefused([Buffer.alloc(512), member("late"), END], "tampered");
    await expectRefused([pax({ path: "y" }), END], "tampered");
    await expectRefused([END, Buffer.alloc(2 * 1024 * 1024)], "tampered");
    expect(await unpack([member("x"), END, Buffer.alloc(9 * 1024)])).toMatchObject({ entries: 1 });
  });

  test("the later of two files wins; a file and a directory of one name are refused", async () => {
    await expectRefused([member("d/", { type: "5" }), member("d", { data: "x" }), END], "tampered");
    await expectRefused([member("before/", { type: "5" }), END], "tampered");
    await expectRefused([member("before/x"), END], "tampered");
    await unpack([member("x", { data: "first one" }), member("x", { data: "second" }), END]);
    expect(await readFile(out("x"), "utf8")).toBe("second");
  });

  test("an error of the source is passed on, and nothing stays", async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield member("x", { data: "y" });
      throw new Error("line cut");
    }
    await expect(unpackTar(broken(), out())).rejects.toThrow("line cut");
    expect(await readdir(dir)).toEqual(["victim"]);
  });

  test("random damage never writes outside and never hangs", async () => {
    const honest = Buffer.concat([
      member("a/", { type: "5" }),
      pax({ path: "a/long" }),
      member("x", { data: "data" }),
      member("l", { type: "2", link: "a" }),
      member("h", { type: "1", link: "a/long" }),
      END,
    ]);
    const damage = fc.array(fc.tuple(fc.nat(honest.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(damage, fc.boolean(), async (changes, mend) => {
        const bytes = Buffer.from(honest);
        for (const [offset, value] of changes) bytes[offset] = value;
        if (mend) mendChecksums(bytes);
        await unpack([bytes], { maxBytes: 10_000 }).catch((error: { code?: string }) => {
          expect(["tampered", "path_confinement", "invalid_path", "limit_exceeded", "unsupported"]).toContain(
            error.code,
          );
        });
        await rm(join(dir, "parent"), { recursive: true, force: true });
        expect(await readdir(dir)).toEqual(["victim"]);
      }),
      { numRuns: 300 },
    );
  });
});

function mendChecksums(bytes: Buffer): void {
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

describe("where an archive may go", () => {
  test("a directory with something in it is a conflict, and is left alone", async () => {
    await mkdir(out(), { recursive: true });
    await writeFile(out("mine"), "mine");
    await expect(unpack([member("x"), END])).rejects.toMatchObject({ code: "conflict" });
    expect(await readdir(out())).toEqual(["mine"]);
  });

  test("a file or a link in its place is a conflict", async () => {
    await mkdir(join(dir, "parent"));
    await writeFile(out(), "file");
    await expect(unpack([member("x"), END])).rejects.toMatchObject({ code: "conflict" });
    await rm(out());
    await mkdir(join(dir, "elsewhere"));
    await symlink(join(dir, "elsewhere"), out());
    await expect(unpack([member("x"), END])).rejects.toMatchObject({ code: "conflict" });
    expect(await readdir(join(dir, "elsewhere"))).toEqual([]);
  });

  test("one that is filled meanwhile is a conflict, and is left alone", async () => {
    async function* slow(): AsyncGenerator<Uint8Array> {
      yield member("x");
      await mkdir(out(), { recursive: true });
      await writeFile(out("mine"), "mine");
      yield END;
    }
    await expect(unpackTar(slow(), out())).rejects.toMatchObject({ code: "conflict" });
    expect(await readdir(join(dir, "parent"))).toEqual(["out"]);
    expect(await readdir(out())).toEqual(["mine"]);
  });

  test("an empty directory is filled and keeps its permission bits", async () => {
    await mkdir(join(dir, "parent"));
    await mkdir(out(), { mode: 0o700 });
    await unpack([member("x"), END]);
    expect((await lstat(out())).mode & 0o777).toBe(0o700);
    expect(await readdir(join(dir, "parent"))).toEqual(["out"]);
  });
});
