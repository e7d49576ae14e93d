import { lstat, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { unpackTar } from "../../src/util/tar/tar-unpack.js";
import {
  END,
  expectRefused,
  member,
  mendChecksums,
  out,
  pax,
  scratch,
  unpack,
  useScratch,
} from "../support/git/hostile-tar.js";

useScratch();

describe("a hostile archive: kinds and bits", () => {
  test.each([
    ["character device", "3"],
    ["block device", "4"],
    ["FIFO", "6"],
    ["unknown kind", "Z"],
  ])("a %s is skipped and named", async (_what, type) => {
    const result = await unpack([member("odd", { type }), member("fine", { data: "ok" }), END]);
    expect(result).toEqual({ entries: 1, bytes: 2, skipped: ["odd"], leftOut: [] });
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
    await rm(scratch("parent"), { recursive: true });
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
    expect(await readdir(scratch())).toEqual(["victim"]);
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
        await rm(scratch("parent"), { recursive: true, force: true });
        expect(await readdir(scratch())).toEqual(["victim"]);
      }),
      { numRuns: 300 },
    );
  });
});

describe("where an archive may go", () => {
  test("a directory with something in it is a conflict, and is left alone", async () => {
    await mkdir(out(), { recursive: true });
    await writeFile(out("mine"), "mine");
    let asked = false;
    async function* stream(): AsyncGenerator<Uint8Array> {
      asked = true;
      yield END;
    }
    await expect(unpackTar(stream(), out())).rejects.toMatchObject({ code: "conflict" });
    expect(asked).toBe(false);
    expect(await readdir(out())).toEqual(["mine"]);
  });

  test("a file or a link in its place is a conflict", async () => {
    await mkdir(scratch("parent"));
    await writeFile(out(), "file");
    await expect(unpack([member("x"), END])).rejects.toMatchObject({ code: "conflict" });
    await rm(out());
    await mkdir(scratch("elsewhere"));
    await symlink(scratch("elsewhere"), out());
    await expect(unpack([member("x"), END])).rejects.toMatchObject({ code: "conflict" });
    expect(await readdir(scratch("elsewhere"))).toEqual([]);
  });

  test("one that is filled meanwhile is a conflict, and is left alone", async () => {
    async function* slow(): AsyncGenerator<Uint8Array> {
      yield member("x");
      await mkdir(out(), { recursive: true });
      await writeFile(out("mine"), "mine");
      yield END;
    }
    await expect(unpackTar(slow(), out())).rejects.toMatchObject({ code: "conflict" });
    expect(await readdir(scratch("parent"))).toEqual(["out"]);
    expect(await readdir(out())).toEqual(["mine"]);
  });

  test("an empty directory is filled and keeps its permission bits", async () => {
    await mkdir(scratch("parent"));
    await mkdir(out(), { mode: 0o700 });
    await unpack([member("x"), END]);
    expect((await lstat(out())).mode & 0o777).toBe(0o700);
    expect(await readdir(scratch("parent"))).toEqual(["out"]);
  });
});
