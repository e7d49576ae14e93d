import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { END, member, pax } from "../../support/git/hostile-tar.js";
import { openPlainGuest, type PlainGuest } from "../../support/guest/plain-guest.js";

let plain: PlainGuest;
let victim: string;
beforeEach(async () => {
  plain = await openPlainGuest();
  victim = join(plain.beside, "victim");
  mkdirSync(victim);
  writeFileSync(join(victim, "file"), "untouched");
  symlinkSync(victim, join(plain.root, "out"));
});
afterEach(() => plain.stop());

/** Unpacks these bytes into `in`, in chunks of an odd size. */
async function unpack(...parts: Buffer[]): Promise<void> {
  const bytes = Buffer.concat(parts);
  async function* stream(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += 1000) yield bytes.subarray(at, at + 1000);
  }
  await plain.files.importTree(stream(), "in");
}

const inside = (...parts: string[]): string => join(plain.root, "in", ...parts);

describe("archives that come in", () => {
  test("files, directories and links arrive, with their bits and without set-id bits", async () => {
    await unpack(
      member("d/", { type: "5" }),
      member("d/plain", { data: "content", mode: "0000600\0" }),
      member("d/set", { data: "#!", mode: "0006755\0" }),
      member("link", { type: "2", link: "d/plain" }),
      pax({ path: `${"long/".repeat(60)}ü` }),
      member("short", { data: "named by a record" }),
      END,
    );
    expect(readFileSync(inside("link"), "utf8")).toBe("content");
    expect(lstatSync(inside("d", "plain")).mode & 0o7777).toBe(0o600);
    expect(lstatSync(inside("d", "set")).mode & 0o7777).toBe(0o755);
    expect(readdirSync(inside()).sort()).toEqual(["d", "link", "long"]);
  });

  const hostile: [string, string, () => Buffer[]][] = [
    ["a name that climbs", "path_confinement", () => [member("../evil", { data: "x" })]],
    ["a name that climbs within", "path_confinement", () => [member("a/../../evil", { data: "x" })]],
    ["an absolute name", "path_confinement", () => [member(join(victim, "evil"), { data: "x" })]],
    [
      "a record with a name that climbs",
      "path_confinement",
      () => [pax({ path: "../evil" }), member("a", { data: "x" })],
    ],
    [
      "a way through a link of its own",
      "path_confinement",
      () => [member("l", { type: "2", link: victim }), member("l/evil", { data: "x" })],
    ],
    [
      "a file onto a link of its own",
      "path_confinement",
      () => [member("l", { type: "2", link: join(victim, "file") }), member("l", { data: "x" })],
    ],
    [
      "a directory through a link of its own",
      "path_confinement",
      () => [
        member("l", { type: "2", link: ".." }),
        member("l/l2", { type: "2", link: ".." }),
        member("l/../../d/", { type: "5" }),
      ],
    ],
    ["a character device", "not_regular_file", () => [member("null", { type: "3" })]],
    ["a block device", "not_regular_file", () => [member("disk", { type: "4" })]],
    ["a named pipe", "not_regular_file", () => [member("pipe", { type: "6" })]],
    ["a hard link", "not_regular_file", () => [member("hard", { type: "1", link: join(victim, "file") })]],
    ["a cut-off file", "invalid_argument", () => [member("cut", { data: "x".repeat(3000) }).subarray(0, 1500)]],
    ["a cut-off header", "invalid_argument", () => [member("cut").subarray(0, 100)]],
    ["a wrong sum", "invalid_argument", () => [Buffer.from(member("sum")).fill("z", 0, 1)]],
    ["a size in letters", "invalid_argument", () => [member("size", { size: "zzzzzzzzzzz\0" })]],
    ["more than fits", "limit_exceeded", () => [pax({ size: "18446744073709551615" }), member("huge", { data: "x" })]],
    ["records without end", "limit_exceeded", () => [member("pax", { type: "x", size: "00000300001\0" })]],
    [
      "a record with more digits than length",
      "invalid_argument",
      () => [member("pax", { type: "x", data: "000000000005 path" })],
    ],
    ["a record that is longer than all", "invalid_argument", () => [member("pax", { type: "x", data: "99 path=x\n" })]],
  ];
  test.each(hostile)("%s is refused", async (_name, code, parts) => {
    await expect(unpack(...parts(), END)).rejects.toMatchObject({ code });
    expect(readdirSync(victim)).toEqual(["file"]);
    expect(readFileSync(join(victim, "file"), "utf8")).toBe("untouched");
    expect(readdirSync(plain.beside).sort()).toEqual(["root", "victim"]);
    // Nothing half-made is left under a name, whole or temporary.
    expect(readdirSync(inside()).filter((name) => name !== "l")).toEqual([]);
    expect(existsSync(join(plain.root, "d"))).toBe(false);
  });

  test("of one that is refused nothing more is read, however long it is", async () => {
    async function* endless(): AsyncGenerator<Uint8Array> {
      yield member("null", { type: "3" });
      for (;;) yield new Uint8Array(64 << 10);
    }
    await expect(plain.files.importTree(endless(), "in")).rejects.toMatchObject({ code: "not_regular_file" });
  });

  test("a link of the tree that leads outside is not followed", async () => {
    symlinkSync(victim, join(plain.root, "in"));
    await expect(unpack(member("evil", { data: "x" }), END)).rejects.toMatchObject({ code: "path_confinement" });
    expect(readdirSync(victim)).toEqual(["file"]);
  });
});

test("what goes out comes in again as it was, without what is no file", async () => {
  await plain.shell(
    "mkdir -p a/b; printf 'x\\0y' > a/b/bin; ln -s b/bin a/l; mkfifo a/pipe; chmod 751 a/b/bin; echo > \"a/$(printf 'n\\nl')\"",
  );
  const chunks: Uint8Array[] = [];
  for await (const chunk of plain.files.exportTree("a")) chunks.push(Uint8Array.from(chunk));
  await unpack(...chunks.map((chunk) => Buffer.from(chunk)));
  expect(readdirSync(inside()).sort()).toEqual(["b", "l", "n\nl"]);
  expect(readFileSync(inside("l"), "latin1")).toBe("x\0y");
  expect(lstatSync(inside("b", "bin")).mode & 0o777).toBe(0o751);
});
