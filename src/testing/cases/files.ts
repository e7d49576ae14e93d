import { check, equal, equalBytes, refuses } from "../assert.js";
import { noise } from "../bytes.js";
import { finishes, script, scriptArgv } from "../script.js";
import type { ConformanceCase } from "../types.js";

/** Names that break code which puts them on a command line or into a list. */
export const AWKWARD_NAMES: readonly string[] = [
  " leading space",
  "$(touch canary)",
  "-rf",
  "--output=x",
  "new\nline",
  "quote'and\"quote",
  "semi;colon",
  "star*",
  "tab\tname",
  "trailing space ",
  "ünïcödé-€-日本",
  "x".repeat(255),
];

export const fileCases: readonly ConformanceCase[] = [
  {
    id: "files.text",
    title: "writing and reading text",
    requirement: "Text is read as it was written, by a command too.",
    async run({ sandbox }) {
      const text = "one\ntwo € 日本\r\n\ttab and no line break at the end";
      await sandbox.writeFile("text", text);
      equal(await sandbox.readFile("text"), text, "readFile");
      equal((await sandbox.exec({ argv: ["cat", "text"] })).stdout, text, "cat");
    },
  },
  {
    id: "files.binary",
    title: "writing and reading bytes",
    requirement: "Bytes are read as they were written, by a command too.",
    async run({ sandbox }) {
      const bytes = noise(70_000, 31);
      await sandbox.writeFile("bytes", bytes);
      equalBytes(await sandbox.readBytes("bytes"), bytes, "readBytes");
      equalBytes((await sandbox.exec({ argv: ["cat", "bytes"], raw: true })).raw?.stdout, bytes, "cat");
      equal(await sandbox.readFile("bytes"), new TextDecoder().decode(bytes), "as text");
    },
  },
  {
    id: "files.empty",
    title: "an empty file",
    requirement: "An empty file is an empty file, not a missing one.",
    async run({ sandbox }) {
      await sandbox.writeFile("empty", "");
      equal(await sandbox.readFile("empty"), "", "readFile");
      equalBytes(await sandbox.readBytes("empty"), new Uint8Array(0), "readBytes");
      equal((await sandbox.stat("empty"))?.size, 0, "size");
    },
  },
  {
    id: "files.large",
    title: "writing and reading 8 MiB",
    requirement: "A file of 8 MiB is written and read exactly.",
    async run({ sandbox }) {
      const bytes = noise(8 * 1024 * 1024, 32);
      await sandbox.writeFile("large", bytes);
      equal((await script(sandbox, "wc -c < large")).trim(), `${bytes.length}`, "size in the sandbox");
      equalBytes(await sandbox.readBytes("large"), bytes, "readBytes");
    },
  },
  {
    id: "files.from-inside",
    title: "reading a command's file",
    requirement: "A file that a command wrote can be read, whatever its owner in the sandbox, until it is removed.",
    async run({ sandbox }) {
      await script(sandbox, "mkdir -p made/by && printf 'a command' > made/by/one && chmod 600 made/by/one");
      equal(await sandbox.readFile("made/by/one"), "a command", "readFile");
      await script(sandbox, "rm made/by/one");
      equal(await sandbox.readFile("made/by/one"), null, "after its removal");
    },
  },
  {
    id: "files.usable-inside",
    title: "a command's rights on written files",
    requirement: "A command can change, move and remove files and directories that the API wrote.",
    async run({ sandbox }) {
      await sandbox.writeFile("dir/file", "one");
      await script(sandbox, "echo two >> dir/file && mv dir/file dir/moved && chmod 700 dir/moved && mv dir other");
      equal(await sandbox.readFile("other/moved"), "onetwo\n", "after the command");
      await script(sandbox, "rm -r other");
      equal(await sandbox.stat("other"), null, "after the removal");
    },
  },
  {
    id: "files.missing",
    title: "a missing file",
    requirement: "A missing file is null, even below a missing directory or below a file.",
    async run({ sandbox }) {
      await sandbox.writeFile("file", "x");
      for (const path of ["missing", "missing/deep", "file/below", `${sandbox.workDir}/missing`]) {
        equal(await sandbox.readFile(path), null, `readFile of ${path}`);
        equal(await sandbox.readBytes(path), null, `readBytes of ${path}`);
        equal(await sandbox.stat(path), null, `stat of ${path}`);
      }
      equal(await sandbox.readFile("file"), "x", "the file that is there");
    },
  },
  {
    id: "files.modes",
    title: "permission bits",
    requirement: "A file gets the requested bits, 0644 by default, whatever the umask.",
    async run({ sandbox }) {
      await sandbox.writeFile("default", "x");
      await sandbox.writeFile("program", "#!/bin/sh\necho ran\n", { mode: 0o755 });
      await sandbox.uploadFiles([{ path: "private", content: "x", mode: 0o600 }]);
      await sandbox.writeFile("shared", "x", { mode: 0o666 });
      const modes = await Promise.all(["default", "program", "private", "shared"].map((path) => sandbox.stat(path)));
      equal(
        modes.map((stat) => stat?.mode.toString(8)),
        ["644", "755", "600", "666"],
        "modes",
      );
      const seen = await script(sandbox, "ls -l default program private shared | cut -c1-10");
      equal(seen.split("\n").sort().join(" ").trim(), "-rw------- -rw-r--r-- -rw-rw-rw- -rwxr-xr-x", "seen by ls");
      equal((await sandbox.exec({ argv: ["./program"] })).stdout, "ran\n", "the program");
    },
  },
  {
    id: "files.modes-kept",
    title: "permission bits of a file that is replaced",
    requirement:
      "A file that is written again keeps its bits, unless others are asked for, also where a link leads to it.",
    async run({ sandbox }) {
      const text = "#!/bin/sh\necho ran\n";
      for (const path of ["program", "linked", "bulk", "stream", "other"])
        await sandbox.writeFile(path, "old", { mode: 0o750 });
      await script(sandbox, "ln -s linked link");
      await sandbox.writeFile("program", text);
      await sandbox.writeFile("link", text);
      await sandbox.uploadFiles([{ path: "bulk", content: text }]);
      await sandbox.writeFile("stream", new Blob([text]).stream());
      await sandbox.writeFile("other", text, { mode: 0o600 });
      const modes = await Promise.all(
        ["program", "linked", "bulk", "stream", "other"].map((path) => sandbox.stat(path)),
      );
      equal(
        modes.map((stat) => stat?.mode.toString(8)),
        ["750", "750", "750", "750", "600"],
        "modes",
      );
      equal((await sandbox.exec({ argv: ["./program"] })).stdout, "ran\n", "the program");
    },
  },
  {
    id: "files.modes-refused",
    title: "invalid permission bits",
    requirement: "A mode with setuid, setgid or sticky bits, or none at all, is `invalid_argument`.",
    async run({ sandbox }) {
      for (const mode of [0o4755, 0o2755, -1, 0o100644, 1.5, Number.NaN]) {
        await refuses("invalid_argument", `mode ${mode}`, () => sandbox.writeFile("file", "x", { mode }));
      }
      equal(await sandbox.stat("file"), null, "nothing was written");
    },
  },
  {
    id: "files.overwrite",
    title: "overwriting a file",
    requirement: "An overwritten file has only the new content.",
    async run({ sandbox }) {
      await sandbox.writeFile("file", "a long first content");
      await sandbox.writeFile("file", "short");
      equal(await sandbox.readFile("file"), "short", "readFile");
      equal(await sandbox.listDirectory(), ["file"], "nothing else is left in the directory");
    },
  },
  {
    id: "files.atomic",
    title: "writing atomically",
    requirement: "A reader in the sandbox sees the old or the new content, never a part of it and never none.",
    async run({ sandbox }) {
      const contents = [noise(300_000, 33), noise(500_000, 34)];
      for (const [i, content] of contents.entries()) await sandbox.writeFile(`known-${i}`, content);
      await sandbox.writeFile("file", contents[0] ?? "");
      const text =
        "a=$(md5sum < known-0); b=$(md5sum < known-1); n=0; until [ -e stop ]; do c=$(md5sum < file) || exit 3; " +
        '[ "$c" = "$a" ] || [ "$c" = "$b" ] || exit 4; n=$((n+1)); echo $n > rounds; done; echo $n';
      const reader = finishes(sandbox, { argv: scriptArgv(text) });
      let isOver = false;
      const end = (): void => {
        isOver = true;
      };
      reader.then(end, end);
      try {
        for (let i = 0; i < 400 && !isOver; i++) {
          await sandbox.writeFile("file", contents[i % 2] ?? "");
          if (i >= 20 && Number(await sandbox.readFile("rounds")) >= 20) break;
        }
      } finally {
        await sandbox.writeFile("stop", "");
      }
      const result = await reader;
      equal(result.exitCode, 0, "exit code of the reader; 3 says that the file was gone, 4 that it was torn");
      check(Number(result.stdout) >= 5, `the reader came to look only ${result.stdout.trim()} times`);
    },
  },
  {
    id: "files.parents",
    title: "missing parent directories",
    requirement: "Writing makes the directories that are missing.",
    async run({ sandbox }) {
      await sandbox.writeFile("a/b/c/file", "deep");
      equal(await sandbox.readFile(`${sandbox.workDir}/a/b/c/file`), "deep", "readFile");
      equal((await sandbox.stat("a/b"))?.type, "directory", "a/b");
    },
  },
  {
    id: "files.parent-is-a-file",
    title: "a file as the parent",
    requirement: "Writing below a file, or onto a directory, is an error that changes nothing.",
    async run({ sandbox }) {
      await sandbox.writeFile("file", "x");
      await sandbox.writeFile("dir/inner", "y");
      const codes = ["conflict", "not_regular_file", "invalid_path"] as const;
      await refuses(codes, "write below a file", () => sandbox.writeFile("file/below", "z"));
      await refuses("not_regular_file", "write onto a directory", () => sandbox.writeFile("dir", "z"));
      equal([await sandbox.readFile("file"), await sandbox.readFile("dir/inner")], ["x", "y"], "what was there");
    },
  },
  {
    id: "files.upload",
    title: "writing several files",
    requirement: "`uploadFiles` and `writeFiles` write every file relative to the work directory. [S1-AC-6]",
    async run({ sandbox }) {
      await sandbox.uploadFiles([
        { path: "one.txt", content: "one" },
        { path: "sub/two.bin", content: Uint8Array.of(0, 255) },
        { path: `${sandbox.workDir}/three`, content: "three", mode: 0o700 },
      ]);
      await sandbox.writeFiles({ "sub/four": "four", five: Uint8Array.of(5) });
      equal(await script(sandbox, "cat one.txt three sub/four"), "onethreefour", "the texts");
      equalBytes(await sandbox.readBytes("sub/two.bin"), Uint8Array.of(0, 255), "sub/two.bin");
      equalBytes(await sandbox.readBytes("five"), Uint8Array.of(5), "five");
      await sandbox.uploadFiles([]);
      equal(await sandbox.listDirectory(), ["five", "one.txt", "sub", "three"], "the directory");
    },
  },
  {
    id: "files.names",
    title: "awkward names",
    requirement:
      "A file can have any name that the system allows, and be written, listed, read, used by commands and deleted.",
    async run({ sandbox }) {
      await sandbox.makeDirectory("d");
      for (const name of AWKWARD_NAMES) await sandbox.writeFile(`d/${name}`, `content of ${name}`);
      equal(await sandbox.listDirectory("d"), [...AWKWARD_NAMES].sort(), "listDirectory");
      for (const name of AWKWARD_NAMES) {
        equal(await sandbox.readFile(`d/${name}`), `content of ${name}`, `readFile of ${name}`);
        equal(await script(sandbox, 'cat "$1"', `d/${name}`), `content of ${name}`, `cat of ${name}`);
        equal(await sandbox.deleteFile(`d/${name}`), true, `deleteFile of ${name}`);
      }
      equal(await sandbox.listDirectory("d"), [], "after the deletions");
      equal(await sandbox.listDirectory(), ["d"], "nothing else was made");
    },
  },
  {
    id: "files.invalid-content",
    title: "invalid content",
    requirement: "Content that is neither a string nor bytes is `invalid_argument`, and that call writes no file.",
    async run({ sandbox }) {
      const bad = (content: unknown) => content as string;
      await refuses("invalid_argument", "null", () => sandbox.writeFile("file", bad(null)));
      await refuses("invalid_argument", "a number", () => sandbox.writeFiles({ good: "x", file: bad(4) }));
      await refuses("invalid_argument", "nothing", () =>
        sandbox.uploadFiles([{ path: "file", content: bad(undefined) }]),
      );
      equal(await sandbox.listDirectory(), [], "the directory");
    },
  },
];
