import { readdir, readFile } from "node:fs/promises";
import { check, equal, refuses } from "../assert.js";
import { makeOutside } from "../outside.js";
import { script } from "../script.js";
import type { ConformanceCase } from "../types.js";

export const fileTreeCases: readonly ConformanceCase[] = [
  {
    id: "files.details",
    title: "a list with details",
    requirement: "`listDirectory` with `details` returns type, size, mode and time of each entry, sorted by name.",
    async run({ sandbox }) {
      const names =
        "mkdir d && cd d && printf 12345 > b && chmod 640 b && mkdir a && chmod 750 a && ln -s nowhere .c && mkfifo e";
      await script(sandbox, `${names} && touch -d @1000000000 b`);
      const entries = await sandbox.listDirectory("d", { details: true });
      const shown = entries.map(({ name, type, size, mode }) => [name, type, type === "file" ? [size, mode] : []]);
      const expected = [
        [".c", "symlink", []],
        ["a", "directory", []],
        ["b", "file", [5, 0o640]],
        ["e", "other", []],
      ];
      equal(shown, expected, "name, type, size and mode");
      equal(entries[2]?.mtimeMs, 1_000_000_000_000, "the time");
      const { name: _, ...own } = entries[1] ?? {};
      equal(own, await sandbox.stat("d/a"), "the same as stat");
      equal(await sandbox.listDirectory("d/a", { details: true }), [], "an empty directory");
      await refuses("not_found", "a missing directory", () => sandbox.listDirectory("missing", { details: true }));
    },
  },
  {
    id: "files.details-large",
    title: "a long list with details",
    requirement: "A list with details that takes more than 256 KiB is complete.",
    async run({ sandbox }) {
      const tail = "x".repeat(240);
      const text = 'mkdir many && cd many && i=1000; while [ $i -lt 2200 ]; do : > $i-"$1"; i=$((i+1)); done';
      await script(sandbox, text, tail);
      const entries = await sandbox.listDirectory("many", { details: true });
      const found = [entries.length, entries[0]?.name, entries.at(-1)?.name];
      equal(found, [1_200, `1000-${tail}`, `2199-${tail}`], "count, first and last");
      check(
        entries.every(({ type, size }) => type === "file" && size === 0),
        "an entry is described wrongly",
      );
    },
  },
  {
    id: "files.follow",
    title: "following a link",
    requirement:
      "`stat` with `follow` describes what a link leads to: null if nothing is there, `path_confinement` outside, `invalid_path` in a loop.",
    async run(context) {
      const { sandbox } = context;
      const outside = await makeOutside(context);
      await sandbox.writeFile("real/file", "12345");
      const text =
        "ln -s real/file link && ln -s link twice && ln -s real dir && ln -s nowhere dangling && ln -s loop loop";
      await script(sandbox, `${text} && ln -s "$1/canary" out`, outside.path);
      for (const path of ["real/file", "link", "twice", "dir/file"]) {
        const found = await sandbox.stat(path, { follow: true });
        equal([found?.type, found?.size], ["file", 5], path);
      }
      equal((await sandbox.stat("dir", { follow: true }))?.type, "directory", "a link to a directory");
      equal((await sandbox.stat("link", { follow: false }))?.type, "symlink", "without follow");
      equal(await sandbox.stat("dangling", { follow: true }), null, "a dangling link");
      await refuses("path_confinement", "a link that leads outside", () => sandbox.stat("out", { follow: true }));
      await refuses("invalid_path", "a loop", () => sandbox.stat("loop", { follow: true }));
      const there = await Promise.all(["link", "dir", "dangling", "missing"].map((path) => sandbox.exists(path)));
      equal(there, [true, true, false, false], "exists");
    },
  },
  {
    id: "files.remove",
    title: "removing files and directories",
    requirement:
      "`remove` takes files, links and empty directories; a full directory only with `recursive`, and never the work directory.",
    async run({ sandbox }) {
      await sandbox.writeFiles({ file: "x", "full/deep/inner": "y", "kept/inner": "z" });
      await script(
        sandbox,
        "mkdir empty && ln -s kept link && ln -s ../kept full/link && mkdir -p full/locked && chmod 0 full/locked",
      );
      equal([await sandbox.remove("file"), await sandbox.remove("file")], [true, false], "a file, twice");
      equal(await sandbox.remove("empty"), true, "an empty directory");
      const error = await refuses("conflict", "a full directory", () => sandbox.remove("full"));
      check(error.hint?.includes("recursive") === true, `the hint does not name recursive: ${error.hint}`);
      equal(await sandbox.readFile("full/deep/inner"), "y", "what is in it");
      equal(await sandbox.remove("full", { recursive: true }), true, "with recursive");
      equal(await sandbox.remove("link", { recursive: true }), true, "a link to a directory");
      equal(await sandbox.remove("missing", { recursive: true }), false, "a missing directory");
      equal(await sandbox.listDirectory(), ["kept"], "what is left");
      for (const path of [".", sandbox.workDir, "kept/.."]) {
        await refuses("invalid_argument", `remove ${path}`, () => sandbox.remove(path, { recursive: true }));
      }
      equal(await sandbox.readFile("kept/inner"), "z", "behind the link");
    },
  },
  {
    id: "files.rename",
    title: "renaming and moving",
    requirement:
      "`rename` moves files, links and directories, makes the parents, and replaces a file or an empty directory.",
    async run({ sandbox }) {
      await sandbox.writeFiles({ a: "one", b: "two", "dir/inner": "x", "full/inner": "y" });
      await script(sandbox, "ln -s nowhere link && mkdir empty");
      await sandbox.rename("a", "new/deep/a");
      equal(await sandbox.readFile("new/deep/a"), "one", "into new directories");
      await sandbox.rename("new/deep/a", "b");
      equal(await sandbox.readFile("b"), "one", "over a file");
      await sandbox.rename("dir", "empty");
      equal(await sandbox.readFile("empty/inner"), "x", "a directory over an empty one");
      await sandbox.rename("link", "moved");
      equal((await sandbox.stat("moved"))?.type, "symlink", "a link");
      await refuses("not_found", "a missing file", () => sandbox.rename("missing", "c"));
      const taken = await refuses("conflict", "over a full directory", () => sandbox.rename("empty", "full"));
      check(taken.message.includes("full"), `the error does not name the target: ${taken.message}`);
      await refuses("invalid_argument", "into itself", () => sandbox.rename("full", "full/deeper"));
      await refuses("invalid_argument", "the work directory", () => sandbox.rename(".", "c"));
      await refuses("path_confinement", "out", () => sandbox.rename("b", "../b"));
      equal(await sandbox.listDirectory(), ["b", "empty", "full", "moved", "new"], "what is there");
    },
  },
  {
    id: "files.copy",
    title: "copying",
    requirement:
      "`copy` copies files and, with `recursive`, trees with modes and links as links; a failed copy leaves nothing behind.",
    async run(context) {
      const { sandbox } = context;
      const outside = await makeOutside(context);
      const text = `mkdir -p tree/deep && printf one > tree/file && chmod 750 tree/file && chmod 700 tree/deep && : > tree/deep/empty
        ln -s file tree/link && ln -s "$1/canary" tree/out && mkfifo tree/fifo && mkdir full && : > full/x && ln -s tree to-tree`;
      await script(sandbox, text, outside.path);
      await sandbox.copy("tree/file", "new/file");
      equal([await sandbox.readFile("new/file"), (await sandbox.stat("new/file"))?.mode], ["one", 0o750], "a file");
      await sandbox.copy("tree/deep/empty", "new/file");
      equal(await sandbox.readFile("new/file"), "", "over a file");
      const error = await refuses("not_regular_file", "a directory", () => sandbox.copy("tree", "copied"));
      check(error.hint?.includes("recursive") === true, `the hint does not name recursive: ${error.hint}`);
      await sandbox.copy("tree", "copied", { recursive: true });
      const copied = await sandbox.listDirectory("copied", { details: true });
      const kinds = copied.map(({ name, type, mode }) => [name, type, type === "symlink" ? 0 : mode]);
      const expected = [
        ["deep", "directory", 0o700],
        ["file", "file", 0o750],
        ["link", "symlink", 0],
        ["out", "symlink", 0],
      ];
      equal(kinds, expected, "the copy");
      equal(await script(sandbox, "cat copied/link && readlink copied/link"), "onefile\n", "its link");
      await script(sandbox, "printf two > copied/file");
      equal(await sandbox.readFile("tree/file"), "one", "the original after a change of the copy");
      await refuses("not_found", "a missing file", () => sandbox.copy("missing", "c"));
      await refuses("conflict", "onto a full directory", () => sandbox.copy("tree", "full", { recursive: true }));
      await refuses("invalid_argument", "into itself", () => sandbox.copy("tree", "tree/in", { recursive: true }));
      await refuses("invalid_argument", "into itself by a link", () =>
        sandbox.copy("tree", "to-tree/deep/in", { recursive: true }),
      );
      await refuses("path_confinement", "through a link", () => sandbox.copy("tree/file", "tree/out/x"));
      const left = await script(sandbox, "find . -name '.gb-*'; ls -A");
      equal(left, "copied\nfull\nnew\nto-tree\ntree\n", "what is there");
      await outside.assertUntouched();
    },
  },
  {
    id: "directories.usual-names",
    title: "directories under the usual names",
    requirement: "`uploadDirectory` and `downloadDirectory` do what `refreshFromHost` and `exportDirectory` do.",
    async run({ sandbox, hostDirectory }) {
      await sandbox.writeFile("tree/file", "x");
      const place = await hostDirectory();
      equal(await sandbox.downloadDirectory("tree", `${place}/out`), `${place}/out`, "where it is");
      equal(
        [await readdir(`${place}/out`), await readFile(`${place}/out/file`, "utf8")],
        [["file"], "x"],
        "what is there",
      );
      await sandbox.uploadDirectory(`${place}/out`, "again");
      equal(await sandbox.readFile("again/file"), "x", "back inside");
    },
  },
];
