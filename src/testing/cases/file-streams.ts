import type { Sandbox } from "../../sandbox/types.js";
import { check, equal, equalBytes, refuses, within } from "../assert.js";
import { noise, utf8 } from "../bytes.js";
import { aside, script, until } from "../script.js";
import type { ConformanceCase } from "../types.js";

/** More than fits into any buffer on the way. */
const LONG = 6 << 20;

export const fileStreamCases: readonly ConformanceCase[] = [
  {
    id: "files.append",
    title: "appending",
    requirement: "`appendFile` adds to a file, makes a missing one with its mode, and follows links inside.",
    async run({ sandbox }) {
      await sandbox.appendFile("new/log", "one\n", { mode: 0o600 });
      await sandbox.appendFile("new/log", utf8("two\n"), { mode: 0o666 });
      await script(sandbox, "ln -s new/log link && ln -s /etc/hostname out && mkdir dir && mkfifo fifo");
      await sandbox.appendFile("link", "three\n");
      equal(await sandbox.readFile("new/log"), "one\ntwo\nthree\n", "the content");
      equal((await sandbox.stat("new/log"))?.mode, 0o600, "the mode");
      const large = noise(3 << 20, 51);
      await sandbox.appendFile("large", large.subarray(0, 10));
      await sandbox.appendFile("large", large.subarray(10));
      equalBytes(await sandbox.readBytes("large"), large, "a large one");
      await Promise.all(Array.from({ length: 20 }, (_, n) => sandbox.appendFile("shared", `${n % 10}`.repeat(1_000))));
      check(/^(?:(\d)\1{999}){20}$/.test((await sandbox.readFile("shared")) ?? ""), "appends at once were mixed up");
      await refuses("path_confinement", "through a link", () => sandbox.appendFile("out", "bad"));
      for (const path of ["dir", "fifo"])
        await refuses("not_regular_file", path, () => sandbox.appendFile(path, "bad"));
      await refuses("invalid_argument", "a number", () => sandbox.appendFile("new/log", 5 as unknown as string));
      equal(await sandbox.listDirectory(), ["dir", "fifo", "large", "link", "new", "out", "shared"], "what is there");
    },
  },
  {
    id: "files.read-stream",
    title: "reading as a stream",
    requirement: "`readStream` returns the bytes of a file, or of a part of it, and null for a missing one.",
    async run({ sandbox }) {
      const bytes = noise(LONG, 52);
      await sandbox.writeFile("file", bytes);
      await script(sandbox, "ln -s file link && ln -s /etc/hostname out && mkdir dir");
      equalBytes(await collect(sandbox, "link"), bytes, "all of it");
      equalBytes(await collect(sandbox, "file", { start: 5_000_000 }), bytes.subarray(5_000_000), "from a position on");
      equalBytes(await collect(sandbox, "file", { start: 7, end: 300_007 }), bytes.subarray(7, 300_007), "a part");
      equalBytes(await collect(sandbox, "file", { start: LONG + 1 }), new Uint8Array(), "behind the end");
      equal(await sandbox.readStream("missing"), null, "a missing file");
      await refuses("not_regular_file", "a directory", () => sandbox.readStream("dir"));
      await refuses("path_confinement", "a link that leads outside", () => sandbox.readStream("out"));
      await refuses("invalid_argument", "an end before the start", () =>
        sandbox.readStream("file", { start: 2, end: 1 }),
      );
    },
  },
  {
    id: "files.read-stream-pulled",
    title: "a stream that nobody reads",
    requirement: "A stream that is not read, or is cancelled, delays no other call, and can be aborted.",
    async run({ sandbox }) {
      await script(sandbox, "head -c 6291456 /dev/zero > file");
      const [unread, cancelled] = [await sandbox.readStream("file"), await sandbox.readStream("file")];
      await cancelled?.cancel();
      const controller = new AbortController();
      const aborted = (await sandbox.readStream("file", { signal: controller.signal }))?.getReader();
      equal((await aborted?.read())?.value?.[0], 0, "the first byte");
      controller.abort();
      const rest = async (): Promise<void> => {
        while ((await aborted?.read())?.done === false);
      };
      await refuses("aborted", "the aborted stream", () => within(15_000, "the aborted stream", rest()));
      equal((await within(15_000, "another call", sandbox.stat("file")))?.size, LONG, "another call");
      await unread?.cancel();
    },
  },
  {
    id: "files.write-stream",
    title: "writing a stream",
    requirement:
      "`writeFile` takes streams of any size; the file appears when it is complete, and a source that fails changes nothing.",
    async run({ sandbox }) {
      const bytes = noise(LONG, 53);
      await sandbox.writeFile("file", pieces(bytes), { mode: 0o600 });
      equalBytes(await sandbox.readBytes("file"), bytes, "an async iterable");
      equal((await sandbox.stat("file"))?.mode, 0o600, "the mode");
      await sandbox.writeFile("web/file", new Blob([utf8("from a blob")]).stream());
      equal(await sandbox.readFile("web/file"), "from a blob", "a ReadableStream");
      async function* failing(): AsyncGenerator<Uint8Array> {
        yield bytes.subarray(0, 3 << 20);
        throw new Error("the source broke");
      }
      const error = await sandbox.writeFile("file", failing()).catch((caught: unknown) => caught);
      check(error instanceof Error && error.message.includes("the source broke"), `a failing source gave ${error}`);
      const texts = (async function* () {
        yield "text";
      })() as unknown as AsyncIterable<Uint8Array>;
      await refuses("invalid_argument", "a stream of texts", () => sandbox.writeFile("file", texts));
      equalBytes(await sandbox.readBytes("file"), bytes, "the old file");
      await until("only whole files", async () =>
        (await script(sandbox, "find . -type f | sort")) === "./file\n./web/file\n" ? true : undefined,
      );
    },
  },
  {
    id: "files.abort",
    title: "aborting file calls",
    requirement: "A call whose signal is aborted rejects with `aborted` at once; aborted before, it does nothing.",
    async run({ sandbox, hostDirectory }) {
      await sandbox.writeFile("file", "old");
      const place = await hostDirectory();
      const opts = { signal: AbortSignal.abort(new Error("too late")) };
      const calls: readonly [string, () => Promise<unknown>][] = [
        ["writeFile", () => sandbox.writeFile("file", "new", opts)],
        ["writeFiles", () => sandbox.writeFiles({ file: "new" }, opts)],
        ["uploadFiles", () => sandbox.uploadFiles([{ path: "file", content: "new" }], opts)],
        ["appendFile", () => sandbox.appendFile("file", "new", opts)],
        ["deleteFile", () => sandbox.deleteFile("file", opts)],
        ["remove", () => sandbox.remove("file", opts)],
        ["rename", () => sandbox.rename("file", "other", opts)],
        ["copy", () => sandbox.copy("file", "other", opts)],
        ["makeDirectory", () => sandbox.makeDirectory("dir", opts)],
        ["setWorkdir", () => sandbox.setWorkdir(".", opts)],
        ["readFile", () => sandbox.readFile("file", opts)],
        ["readBytes", () => sandbox.readBytes("file", opts)],
        ["readStream", () => sandbox.readStream("file", opts)],
        ["stat", () => sandbox.stat("file", opts)],
        ["exists", () => sandbox.exists("file", opts)],
        ["listDirectory", () => sandbox.listDirectory(".", opts)],
        ["exportDirectory", () => sandbox.exportDirectory(".", `${place}/out`, opts)],
        ["refreshFromHost", () => sandbox.refreshFromHost(place, "dir", opts)],
      ];
      for (const [name, call] of calls) await refuses("aborted", name, call);
      equal([await sandbox.listDirectory(), await sandbox.readFile("file")], [["file"], "old"], "what is there");
      const controller = new AbortController();
      async function* endless(): AsyncGenerator<Uint8Array> {
        yield new Uint8Array(1 << 20);
        controller.abort();
        await new Promise(() => undefined);
      }
      const writing = aside(sandbox.writeFile("file", endless(), { signal: controller.signal }));
      await refuses("aborted", "a write under way", () => within(15_000, "a write under way", writing));
      equal(await sandbox.readFile("file"), "old", "the old file");
      await until("nothing else", async () => ((await script(sandbox, "ls -A")) === "file\n" ? true : undefined));
    },
  },
];

async function collect(sandbox: Sandbox, path: string, range = {}): Promise<Uint8Array> {
  const stream = await sandbox.readStream(path, range);
  check(stream !== null, `${path} is missing`);
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function* pieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000);
}
