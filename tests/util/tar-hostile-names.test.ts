import { readdir, readFile, readlink } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { END, expectRefused, member, mendChecksums, out, pax, unpack, useScratch } from "../support/git/hostile-tar.js";

useScratch();

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
    mendChecksums(block);
    await expectRefused([block, END], "path_confinement");
  });

  test("a GNU header has no prefix: what stands there are times", async () => {
    const block = member("x", { magic: "ustar  \0" });
    block.write("14000000000", 345, "latin1");
    mendChecksums(block);
    await unpack([block, END]);
    expect(await readdir(out())).toEqual(["x"]);
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

  test("also when the link is not at the top", async () => {
    const link = member("a/b/l", { type: "2", link: "." });
    await expectRefused([link, member("a/b/l/c/x", { data: "bad" }), END], "path_confinement");
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

  test("a hard link to a link becomes the same link", async () => {
    await unpack([member("l", { type: "2", link: "f" }), member("h", { type: "1", link: "l" }), END]);
    expect(await readlink(out("h"))).toBe("f");
  });

  test("a hard link to a link is judged at its own place", async () => {
    const inside = member("d/l", { type: "2", link: "../before" });
    await expectRefused([inside, member("h", { type: "1", link: "d/l" }), END], "path_confinement");
  });
});
