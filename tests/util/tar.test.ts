import { execFileSync } from "node:child_process";
import type { Stats } from "node:fs";
import {
  appendFile,
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { packDirectory } from "../../src/util/tar/tar-pack.js";
import { unpackTar } from "../../src/util/tar/tar-unpack.js";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "glovebox-tar-"));
  await mkdir(join(dir, "in"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const at = (...parts: string[]): string => join(dir, ...parts);
const bytesAt = (base: string, name: Buffer): Buffer => Buffer.concat([Buffer.from(`${base}/`), name]);
const invalidName = Buffer.from([0x62, 0xff, 0xfe, 0x63]);
const longInvalidName = Buffer.concat([Buffer.alloc(150, "n"), Buffer.from([0xff])]);

async function collect(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function* slices(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  for (let offset = 0, turn = 0; offset < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length] as number;
    yield bytes.subarray(offset, offset + size);
    offset += size;
  }
}

/** Every path of a tree with its kind, permission bits and content, as text that can be compared. */
async function describeTree(root: string): Promise<string[]> {
  const lines: string[] = [];
  const walk = async (path: Buffer, name: string): Promise<void> => {
    const stats: Stats = await lstat(path);
    const mode = (stats.mode & 0o7777).toString(8);
    if (stats.isSymbolicLink()) {
      lines.push(`${name} -> ${(await readlink(path, { encoding: "buffer" })).toString("latin1")}`);
    } else if (stats.isDirectory()) {
      if (name !== "") lines.push(`${name}/ ${mode}`);
      for (const child of await readdir(path, { encoding: "buffer" })) {
        await walk(Buffer.concat([path, Buffer.from("/"), child]), `${name}/${child.toString("latin1")}`);
      }
    } else {
      const content = await readFile(path);
      lines.push(
        `${name} ${mode} ${content.length} ${content.toString("base64").slice(0, 80)} ${Math.floor(stats.mtimeMs / 1000)}`,
      );
    }
  };
  await walk(Buffer.from(root), "");
  return lines.sort();
}

async function makeNastyTree(root: string): Promise<void> {
  const file = async (name: Buffer | string, content: string | Buffer, mode = 0o644): Promise<void> => {
    const path = bytesAt(root, Buffer.from(name));
    await writeFile(path, content);
    await chmod(path, mode);
    await utimes(path, 1_700_000_000, 1_700_000_000);
  };
  const deep = `${"d".repeat(90)}/${"e".repeat(90)}/${"f".repeat(90)}`;
  await mkdir(join(root, deep), { recursive: true });
  await mkdir(join(root, "empty"));
  await mkdir(join(root, "private"), { mode: 0o700 });
  await file("empty-file", "");
  await file("block", Buffer.alloc(512, "b"));
  await file("block-and-one", Buffer.alloc(513, "c"));
  await file("run.sh", "#!/bin/sh\n", 0o755);
  await file("read-only", "r", 0o444);
  await file("99".padEnd(99, "x"), "99");
  await file("100".padEnd(100, "x"), "100");
  await file("101".padEnd(101, "x"), "101");
  await file(`${deep}/${"g".repeat(255)}`, "deep");
  await file("naïve – 日本語 😀", "unicode");
  await file("new\nline and\ttab \\ back", "odd");
  await file("-rf", "dash");
  await file("..dots", "dots");
  await file(invalidName, "invalid");
  await file(longInvalidName, "long invalid");
  await file("big", Buffer.alloc(9 * 1024 * 1024, Buffer.from(Array.from({ length: 251 }, (_, i) => i))));
  await symlink("run.sh", join(root, "link"));
  await symlink("nowhere", join(root, "dangling"));
  await symlink(`${"./".repeat(80)}run.sh`, join(root, "long-link"));
  await symlink("../../../run.sh", join(root, deep, "up"));
  await symlink(Buffer.from([0x78, 0xfd]), join(root, "link-to-invalid"));
  await symlink("naïve – 日本語 😀", join(root, "link-to-unicode"));
  await symlink("empty", join(root, "link-to-directory"));
}

describe("tar", () => {
  test("a nasty tree comes back as it was", async () => {
    await makeNastyTree(at("in"));
    const result = await unpackTar(packDirectory(at("in")), at("out"));
    expect(await describeTree(at("out"))).toEqual(await describeTree(at("in")));
    expect(result).toMatchObject({ entries: 28, skipped: [] });
    expect(result.bytes).toBeGreaterThan(9 * 1024 * 1024);
    expect(await readdir(dir)).toEqual(["in", "out"]);
  });

  test("the system's tar reads what we pack", async () => {
    await makeNastyTree(at("in"));
    await mkdir(at("out"));
    await writeFile(at("a.tar"), packDirectory(at("in")));
    execFileSync("tar", ["-xpf", at("a.tar"), "-C", at("out")]);
    expect(await describeTree(at("out"))).toEqual(await describeTree(at("in")));
  });

  test.each(["gnu", "oldgnu", "pax"])("we read what the system's tar packs as %s", async (format) => {
    await makeNastyTree(at("in"));
    execFileSync("tar", [`--format=${format}`, "-cf", at("a.tar"), "-C", at("in"), "."]);
    const archive = await readFile(at("a.tar"));
    await unpackTar(slices(archive, [1000, 7, 65536]), at("out"));
    expect(await describeTree(at("out"))).toEqual(await describeTree(at("in")));
  });

  test("we read v7 and ustar headers of the system's tar", async () => {
    await mkdir(at("in", "p".repeat(80), "q".repeat(60)), { recursive: true });
    await writeFile(at("in", "p".repeat(80), "q".repeat(60), "file"), "by prefix");
    execFileSync("tar", ["--format=ustar", "-cf", at("ustar.tar"), "-C", at("in"), "."]);
    await unpackTar(slices(await readFile(at("ustar.tar")), [4096]), at("ustar"));
    expect(await describeTree(at("ustar"))).toEqual(await describeTree(at("in")));
    await mkdir(at("small"));
    await writeFile(at("small", "old"), "v7");
    execFileSync("tar", ["--format=v7", "-cf", at("v7.tar"), "-C", at("small"), "."]);
    await unpackTar(slices(await readFile(at("v7.tar")), [4096]), at("v7"));
    expect(await describeTree(at("v7"))).toEqual(await describeTree(at("small")));
  });

  test("hard links made by the system's tar become files of their own", async () => {
    await writeFile(at("in", "a"), "shared");
    execFileSync("ln", [at("in", "a"), at("in", "b")]);
    execFileSync("tar", ["-cf", at("a.tar"), "-C", at("in"), "."]);
    const result = await unpackTar(slices(await readFile(at("a.tar")), [4096]), at("out"));
    expect(result.bytes).toBe(12);
    expect(await readFile(at("out", "b"), "utf8")).toBe("shared");
    expect((await lstat(at("out", "a"))).nlink).toBe(1);
  });

  test("sockets and FIFOs are left out, and special bits too", async () => {
    execFileSync("mkfifo", [at("in", "fifo")]);
    const server = createServer().listen(at("in", "socket"));
    await new Promise((resolve) => server.once("listening", resolve));
    await writeFile(at("in", "setuid"), "s");
    await chmod(at("in", "setuid"), 0o6755);
    try {
      await unpackTar(packDirectory(at("in")), at("out"));
    } finally {
      server.close();
    }
    expect(await readdir(at("out"))).toEqual(["setuid"]);
    expect((await lstat(at("out", "setuid"))).mode & 0o7777).toBe(0o755);
  });

  test("what is packed has no special bits, and a name beyond ASCII in a pax record", async () => {
    await writeFile(at("in", "é"), "s");
    await chmod(at("in", "é"), 0o6755);
    const archive = (await collect(packDirectory(at("in")))).toString("latin1");
    expect(archive.slice(156, 157)).toBe("x");
    expect(archive.slice(512, 1024)).toBe("11 path=\u00c3\u00a9\n".padEnd(512, "\0"));
    expect(archive.slice(1024 + 100, 1024 + 108)).toBe("0000755\0");
  });

  test("an empty directory packs to two blocks of zeros and unpacks to an empty directory", async () => {
    expect(await collect(packDirectory(at("in")))).toEqual(Buffer.alloc(1024));
    await unpackTar(packDirectory(at("in")), at("out"));
    expect(await readdir(at("out"))).toEqual([]);
  });

  test("a missing directory is the system's error", async () => {
    await expect(collect(packDirectory(at("missing")))).rejects.toMatchObject({ code: "ENOENT" });
    await expect(collect(packDirectory("/dev/null"))).rejects.toMatchObject({ code: "ENOTDIR" });
  });

  test.each([
    ["grows", (path: string) => appendFile(path, Buffer.alloc(300_000, "z"))],
    ["shrinks", (path: string) => truncate(path, 100_000)],
  ])("a file that %s while it is read still gives a valid archive", async (_how, change) => {
    await writeFile(at("in", "a"), Buffer.alloc(1_000_000, "a"));
    await writeFile(at("in", "b"), "after");
    const chunks: Uint8Array[] = [];
    for await (const chunk of packDirectory(at("in"))) {
      if (chunks.push(chunk) === 1) await change(at("in", "a"));
    }
    await unpackTar(slices(Buffer.concat(chunks), [65536]), at("out"));
    expect((await lstat(at("out", "a"))).size).toBe(1_000_000);
    expect(await readFile(at("out", "b"), "utf8")).toBe("after");
  });

  test("a directory swapped for a link while it is walked is not followed", async () => {
    await mkdir(at("secret"));
    await writeFile(at("secret", "key"), "top secret");
    await writeFile(at("in", "a"), Buffer.alloc(200_000));
    await mkdir(at("in", "b"));
    const chunks: Uint8Array[] = [];
    for await (const chunk of packDirectory(at("in"))) {
      if (chunks.push(chunk) !== 1) continue;
      await rm(at("in", "b"), { recursive: true });
      await symlink(at("secret"), at("in", "b"));
    }
    expect(Buffer.concat(chunks).includes("top secret")).toBe(false);
  });

  test("a file over 8 GiB has its size in a pax record", async () => {
    const size = 8 * 1024 ** 3 + 5;
    const handle = await open(at("in", "huge"), "w");
    await handle.truncate(size);
    await handle.close();
    for await (const chunk of packDirectory(at("in"))) {
      expect(Buffer.from(chunk).toString("latin1", 512, 1024)).toContain(`size=${size}\n`);
      break;
    }
  });

  test("stopping early closes every file that was open", async () => {
    await mkdir(at("in", "a", "b"), { recursive: true });
    await writeFile(at("in", "a", "b", "c"), Buffer.alloc(500_000));
    for await (const chunk of packDirectory(at("in"))) {
      expect(chunk.length).toBeGreaterThan(0);
      break;
    }
    const open = await readdir("/proc/self/fd");
    const targets = await Promise.all(open.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => "")));
    expect(targets.filter((target) => target.startsWith(dir))).toEqual([]);
  });

  test("an archive is the same whatever the pieces it comes in", async () => {
    await writeFile(at("in", "a"), Buffer.alloc(1300, "a"));
    await writeFile(at("in", "é"), "b");
    await symlink("a", at("in", "link"));
    const archive = await collect(packDirectory(at("in")));
    const expected = await describeTree(at("in"));
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 5 }), async (sizes) => {
        run += 1;
        await utimes(at("in", "a"), 1, 1);
        await unpackTar(slices(archive, sizes), at(`out${run}`));
        const strip = (lines: string[]): string[] => lines.map((line) => line.replace(/ \d+$/, ""));
        expect(strip(await describeTree(at(`out${run}`)))).toEqual(strip(expected));
      }),
      { numRuns: 25 },
    );
  });

  test("random trees come back as they were", async () => {
    const name = fc
      .uint8Array({ minLength: 1, maxLength: 120 })
      .map((bytes) => Buffer.from(bytes.map((byte) => (byte === 0 || byte === 0x2f ? 0x61 : byte))))
      .filter((bytes) => ![".", ".."].includes(bytes.toString("latin1")));
    const tree = fc.uniqueArray(fc.tuple(name, fc.uint8Array({ maxLength: 1200 })), {
      maxLength: 8,
      selector: ([bytes]) => bytes.toString("latin1"),
    });
    let run = 0;
    await fc.assert(
      fc.asyncProperty(tree, async (files) => {
        run += 1;
        await mkdir(at(`in${run}`));
        for (const [bytes, content] of files) {
          const path = bytesAt(at(`in${run}`), bytes);
          await writeFile(path, content);
          await utimes(path, 1_600_000_000, 1_600_000_000);
        }
        await unpackTar(packDirectory(at(`in${run}`)), at(`out${run}`));
        expect(await describeTree(at(`out${run}`))).toEqual(await describeTree(at(`in${run}`)));
      }),
      { numRuns: 30 },
    );
  });

  test("the pace is set by the reader: little is read ahead", async () => {
    await writeFile(at("in", "a"), Buffer.alloc(4 * 1024 * 1024));
    const iterator = packDirectory(at("in"))[Symbol.asyncIterator]();
    await iterator.next();
    await truncate(at("in", "a"), 0);
    let size = 0;
    let zeros = true;
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
      size += next.value.length;
      zeros &&= next.value.every((byte) => byte === 0);
    }
    expect(size).toBeGreaterThan(4 * 1024 * 1024 - 128 * 1024);
    expect(zeros).toBe(true);
  });
});
