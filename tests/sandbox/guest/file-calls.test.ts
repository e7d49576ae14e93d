import { execFileSync } from "node:child_process";
import { readdirSync, truncateSync, writeFileSync } from "node:fs";
import { mkdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MAX_FILE_BYTES } from "../../../src/sandbox/types.js";
import { openPlainGuest, type PlainGuest } from "../../support/guest/plain-guest.js";

let plain: PlainGuest;
beforeEach(async () => {
  plain = await openPlainGuest();
});
afterEach(() => plain.stop());

function sparse(name: string, bytes: number): void {
  writeFileSync(join(plain.root, name), "");
  truncateSync(join(plain.root, name), bytes);
}

/** Blocks of data on the disk, not a hole: so that copying takes its time. */
function real(name: string, megabytes: number): void {
  const to = `of=${join(plain.root, name)}`;
  execFileSync("dd", ["if=/dev/zero", to, "bs=1M", `count=${megabytes}`, "status=none"]);
}

function temporaries(directory = plain.root): string[] {
  return readdirSync(directory).filter((name) => name.startsWith(".gb-"));
}

async function workers(): Promise<string[]> {
  const children = await readFile(`/proc/${plain.pid}/task/${plain.pid}/children`, "utf8");
  return children.trim().split(" ").filter(Boolean);
}

describe("what is aborted", () => {
  test("a copy ends with its process, and nothing of it stays", async () => {
    real("big", 300);
    const controller = new AbortController();
    const copying = plain.files.copy("big", "to/copied", false, controller.signal);
    const refused = expect(copying).rejects.toThrow("enough");
    await expect.poll(() => readdirSync(plain.root)).toContain("to");
    await expect.poll(() => temporaries(join(plain.root, "to"))).toHaveLength(1);
    controller.abort(new Error("enough"));
    await refused;
    await expect.poll(workers).toEqual([]);
    expect(readdirSync(join(plain.root, "to"))).toEqual([]);
  });

  test("a file that is written is not there, and neither is what was written of it", async () => {
    const controller = new AbortController();
    async function* source(): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(3 << 20);
      await expect.poll(() => temporaries()).toHaveLength(1);
      controller.abort(new Error("enough"));
      yield Buffer.alloc(3 << 20);
    }
    await expect(plain.files.writeStream("file", source(), 0o644, controller.signal)).rejects.toThrow("enough");
    await expect.poll(() => readdirSync(plain.root)).toEqual([]);
  });

  test("an append of many bytes is all or nothing", async () => {
    await plain.files.write("log", Buffer.from("old"), 0o644);
    const controller = new AbortController();
    controller.abort(new Error("enough"));
    const content = Buffer.alloc(2 << 20);
    await expect(plain.files.append("log", content, 0o644, controller.signal)).rejects.toThrow("enough");
    await expect.poll(() => readdirSync(plain.root)).toEqual(["log"]);
    expect(await readFile(join(plain.root, "log"), "utf8")).toBe("old");
  });

  test("a list ends, and so does the call", async () => {
    for (let n = 0; n < 400; n++) writeFileSync(join(plain.root, `${n}-${"x".repeat(240)}`), "");
    const before = plain.guest.channel.isIdle;
    const listing = plain.files.listDetails("", AbortSignal.abort(new Error("enough")));
    await expect(listing).rejects.toThrow("enough");
    await expect.poll(() => plain.guest.channel.isIdle).toBe(before);
    expect(await plain.files.list("")).toHaveLength(400);
  });
});

describe("when the host has gone", () => {
  test("nothing half-made stays: neither a file nor a copy", async () => {
    real("big", 300);
    let reached = (): void => undefined;
    const isWritten = new Promise<void>((resolve) => {
      reached = resolve;
    });
    async function* source(): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(1 << 20);
      reached();
      await new Promise(() => undefined);
    }
    const writing = plain.files.writeStream("file", source(), 0o644);
    const lost = expect(plain.files.copy("big", "copied", false)).rejects.toMatchObject({ code: "closed" });
    writing.catch(() => undefined);
    await isWritten;
    await expect.poll(() => temporaries()).toHaveLength(2);
    await plain.guest.stop();
    await lost;
    expect(readdirSync(plain.root)).toEqual(["big"]);
  });
});

describe("streams", () => {
  test("a file that is too large for one piece is read and written in parts", async () => {
    sparse("huge", MAX_FILE_BYTES + (1 << 20));
    await plain.files.append("huge", Buffer.from("the end"), 0o644);
    await expect(plain.files.read("huge")).rejects.toMatchObject({
      code: "limit_exceeded",
      hint: expect.stringContaining("readStream"),
    });
    const tail = await plain.files.readStream("huge", { start: MAX_FILE_BYTES + (1 << 20) });
    const chunks: Uint8Array[] = [];
    for await (const chunk of tail ?? []) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toBe("the end");
    const all = await plain.files.readStream("huge", { start: 0 });
    let length = 0;
    for await (const chunk of all ?? []) length += chunk.length;
    expect(length).toBe(MAX_FILE_BYTES + (1 << 20) + 7);
  });

  test("one that nobody reads does not grow", async () => {
    sparse("file", 64 << 20);
    const stream = await plain.files.readStream("file", { start: 0 });
    const before = process.memoryUsage().arrayBuffers;
    // More than enough for the guest to send everything, if it were not held back.
    for (let n = 0; n < 200; n++) await plain.files.stat("file");
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 << 20);
    await stream?.[Symbol.asyncIterator]().return?.();
    await expect.poll(() => plain.guest.channel.isIdle).toBe(true);
  });
});

describe("a copy", () => {
  test("of a directory that cannot be written, and below it, has the same modes", async () => {
    await plain.shell("mkdir -p tree/sub && touch tree/sub/file && chmod 400 tree/sub/file && chmod 500 tree/sub tree");
    await plain.files.copy("tree", "copy", true);
    expect((await plain.shell("find copy -printf '%P %m\\n' | sort")).stdout).toBe(" 500\nsub 500\nsub/file 400\n");
    await plain.shell("chmod -R u+w tree copy");
  });

  test("of a link into the tree that it is in is still a link, and leads nowhere else", async () => {
    await mkdir(join(plain.root, "tree"));
    await symlink("../tree", join(plain.root, "tree/self"));
    await plain.files.copy("tree", "copy", true);
    expect((await plain.shell("readlink copy/self")).stdout).toBe("../tree\n");
  });

  test("is refused into itself, by whatever way", async () => {
    await plain.shell("mkdir -p tree/deep && ln -s tree/deep way");
    const into = plain.files.copy("tree", "way/copy", true);
    await expect(into).rejects.toMatchObject({ code: "invalid_argument", hint: expect.any(String) });
    await expect(plain.files.rename("tree", "way/copy")).rejects.toMatchObject({ code: "invalid_argument" });
    expect((await plain.shell("find . -name '.gb-*'; ls tree/deep")).stdout).toBe("");
  });

  test("names what is in its way", async () => {
    await plain.shell("mkdir -p tree full && touch file full/x");
    const cases: [string, string, string][] = [
      ["tree", "full", "conflict"],
      ["file", "full", "not_regular_file"],
      ["tree", "file", "invalid_path"],
      ["tree", "file/below", "invalid_path"],
    ];
    for (const [from, to, code] of cases) {
      const error: unknown = await plain.files.copy(from, to, true).catch((caught: unknown) => caught);
      expect(error).toMatchObject({ code, message: expect.stringContaining(to) });
    }
    expect(temporaries()).toEqual([]);
  });
});
