import { access } from "node:fs/promises";
import { check, equal, refuses, within } from "../assert.js";
import { noise } from "../bytes.js";
import { script } from "../script.js";
import { findSocketTool } from "../sockets.js";
import type { ConformanceCase } from "../types.js";

export const fileKindCases: readonly ConformanceCase[] = [
  {
    id: "files.stat",
    title: "the kind of a path",
    requirement: "`stat` distinguishes files, directories, links and other kinds, and describes a link itself.",
    async run({ sandbox }) {
      await sandbox.writeFile("file", noise(1_234, 41), { mode: 0o640 });
      await sandbox.makeDirectory("dir");
      await script(
        sandbox,
        "ln -s file link && ln -s nowhere dangling && ln -s /etc out && mkfifo fifo && chmod 750 dir",
      );
      const file = await sandbox.stat("file");
      equal([file?.type, file?.size, file?.mode], ["file", 1_234, 0o640], "the file");
      const now = Number(await script(sandbox, "date +%s")) * 1_000;
      check(Math.abs((file?.mtimeMs ?? 0) - now) < 600_000, `mtimeMs is ${file?.mtimeMs}, now is ${now}`);
      const dir = await sandbox.stat("dir");
      equal([dir?.type, dir?.mode], ["directory", 0o750], "the directory");
      for (const link of ["link", "dangling", "out"]) equal((await sandbox.stat(link))?.type, "symlink", link);
      equal((await sandbox.stat("fifo"))?.type, "other", "the FIFO");
      equal((await sandbox.stat("."))?.type, "directory", "the work directory");
    },
  },
  {
    id: "files.list",
    title: "listing a directory",
    requirement: "`listDirectory` returns all names, sorted, hidden ones too, without `.` and `..`.",
    async run({ sandbox }) {
      equal(await sandbox.listDirectory(), [], "an empty work directory");
      for (const name of ["b", "a", ".hidden", "B", "10", "9"]) await sandbox.writeFile(`d/${name}`, "");
      await sandbox.makeDirectory("d/sub");
      const expected = [".hidden", "10", "9", "B", "a", "b", "sub"];
      equal(await sandbox.listDirectory("d"), expected, "relative");
      equal(await sandbox.listDirectory(`${sandbox.workDir}/d/`), expected, "absolute");
      equal(await sandbox.listDirectory(), ["d"], "the work directory");
    },
  },
  {
    id: "files.list-large",
    title: "listing many names",
    requirement: "A directory whose names take more than 64 KiB is listed completely.",
    async run({ sandbox }) {
      const tail = "x".repeat(90);
      const text = 'mkdir many && cd many && i=1000; while [ $i -lt 2000 ]; do : > $i-"$1"; i=$((i+1)); done';
      await script(sandbox, text, tail);
      const names = await sandbox.listDirectory("many");
      equal([names.length, names[0], names.at(-1)], [1_000, `1000-${tail}`, `1999-${tail}`], "count, first and last");
    },
  },
  {
    id: "files.list-missing",
    title: "listing a missing directory",
    requirement: "Listing a missing directory is `not_found`, listing a file `invalid_path`.",
    async run({ sandbox }) {
      await sandbox.writeFile("file", "x");
      await refuses("not_found", "list a missing directory", () => sandbox.listDirectory("missing"));
      await refuses(["invalid_path", "not_found"], "list a file", () => sandbox.listDirectory("file"));
    },
  },
  {
    id: "files.delete",
    title: "deleting a file",
    requirement: "`deleteFile` returns whether there was a file, and refuses a directory.",
    async run({ sandbox }) {
      await sandbox.writeFile("file", "x");
      await sandbox.writeFile("dir/inner", "y");
      equal(await sandbox.deleteFile("file"), true, "a file");
      equal(await sandbox.stat("file"), null, "afterwards");
      equal(await sandbox.deleteFile("file"), false, "a missing file");
      equal(await sandbox.deleteFile("missing/deep"), false, "below a missing directory");
      await refuses("not_regular_file", "a directory", () => sandbox.deleteFile("dir"));
      equal(await sandbox.readFile("dir/inner"), "y", "what is in it");
    },
  },
  {
    id: "files.delete-link",
    title: "deleting a link",
    requirement: "Deleting a link removes the link and not its target.",
    async run({ sandbox }) {
      await sandbox.writeFile("target", "x");
      await script(sandbox, "ln -s target link && ln -s nowhere dangling");
      equal([await sandbox.deleteFile("link"), await sandbox.deleteFile("dangling")], [true, true], "deleteFile");
      equal(await sandbox.listDirectory(), ["target"], "what is left");
      equal(await sandbox.readFile("target"), "x", "the target");
    },
  },
  {
    id: "files.make-directory",
    title: "making directories",
    requirement: "`makeDirectory` makes the parents too; one that exists is fine; a file in the way is `conflict`.",
    async run({ sandbox }) {
      await sandbox.makeDirectory("a/b/c");
      await sandbox.makeDirectory("a/b/c");
      await sandbox.writeFile("a/b/c/file", "x");
      await sandbox.makeDirectory("a/b/c");
      equal(await sandbox.listDirectory("a/b/c"), ["file"], "what was in it");
      await refuses("conflict", "a file in the way", () => sandbox.makeDirectory("a/b/c/file"));
      await refuses("conflict", "a file on the way", () => sandbox.makeDirectory("a/b/c/file/d"));
      equal(await script(sandbox, "touch a/b/new && rmdir a/b/c 2>/dev/null || echo kept"), "kept\n", "usable");
    },
  },
  {
    id: "files.fifo",
    title: "a FIFO",
    requirement: "A FIFO is `not_regular_file` at once: no call waits for its other end.",
    async run({ sandbox }) {
      await script(sandbox, "mkfifo fifo");
      for (const call of [() => sandbox.readFile("fifo"), () => sandbox.readBytes("fifo")]) {
        await refuses("not_regular_file", "reading a FIFO", () => within<unknown>(15_000, "reading a FIFO", call()));
      }
      const write = sandbox.writeFile("fifo", "x").then(
        () => true,
        () => false,
      );
      if (await within(15_000, "writing to a FIFO", write))
        equal(await sandbox.readFile("fifo"), "x", "what was written");
    },
  },
  {
    id: "files.socket",
    title: "a socket",
    requirement: "A Unix socket is `not_regular_file`, and its type in `stat` is `other`.",
    async run({ sandbox, skip }) {
      const tool = (await findSocketTool(sandbox)) ?? skip("no program in the sandbox can open a socket");
      await tool.bind("socket");
      equal((await sandbox.stat("socket"))?.type, "other", "stat");
      const call = () => within(15_000, "reading a socket", sandbox.readFile("socket"));
      await refuses("not_regular_file", "reading a socket", call);
    },
  },
  {
    id: "files.directory-as-file",
    title: "reading a directory",
    requirement: "Reading a directory is `not_regular_file`.",
    async run({ sandbox }) {
      await sandbox.makeDirectory("dir");
      for (const path of ["dir", ".", sandbox.workDir]) {
        await refuses("not_regular_file", `readFile of ${path}`, () => sandbox.readFile(path));
        await refuses("not_regular_file", `readBytes of ${path}`, () => sandbox.readBytes(path));
      }
    },
  },
  {
    id: "files.unreadable-by-mode",
    title: "a directory without permission bits",
    requirement:
      "A directory that a command made inaccessible is an error or readable, never a hang; teardown still works.",
    closes: true,
    async run({ sandbox, harness }) {
      await script(sandbox, "mkdir -p locked/deep && echo x > locked/deep/file && chmod 000 locked/deep locked");
      const answer = await within(
        15_000,
        "readFile",
        sandbox.readFile("locked/deep/file").catch((error: unknown) => (error as { code?: string }).code),
      );
      check(["x\n", "permission_denied"].includes(answer ?? ""), `readFile below a locked one returned ${answer}`);
      const directory = harness.host?.directoryOf?.(sandbox);
      await sandbox.teardown();
      if (directory !== undefined) await assertGone(directory);
    },
  },
];

async function assertGone(directory: string): Promise<void> {
  const isThere = await access(directory).then(
    () => true,
    () => false,
  );
  check(!isThere, `${directory} is still there after teardown`);
}
