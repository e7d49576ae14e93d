import type { Sandbox } from "../../sandbox/types.js";
import { equal, includes, refuses } from "../assert.js";
import { script } from "../script.js";
import type { ConformanceCase } from "../types.js";

/** Every call that takes a path in the sandbox. */
export function pathCalls(
  sandbox: Sandbox,
  path: string,
  hostDirectory: string,
): Record<string, () => Promise<unknown>> {
  return {
    readFile: () => sandbox.readFile(path),
    readBytes: () => sandbox.readBytes(path),
    stat: () => sandbox.stat(path),
    listDirectory: () => sandbox.listDirectory(path),
    writeFile: () => sandbox.writeFile(path, "x"),
    writeFiles: () => sandbox.writeFiles({ fine: "x", [path]: "x" }),
    uploadFiles: () =>
      sandbox.uploadFiles([
        { path: "fine", content: "x" },
        { path, content: "x" },
      ]),
    deleteFile: () => sandbox.deleteFile(path),
    makeDirectory: () => sandbox.makeDirectory(path),
    setWorkdir: () => sandbox.setWorkdir(path),
    exportDirectory: () => sandbox.exportDirectory(path, `${hostDirectory}/exported`),
    refreshFromHost: () => sandbox.refreshFromHost(hostDirectory, path),
    "exec cwd": () => sandbox.exec({ argv: ["true"], cwd: path }),
    "spawn cwd": () => sandbox.spawn({ argv: ["true"], cwd: path }),
  };
}

export const pathCases: readonly ConformanceCase[] = [
  {
    id: "paths.dot-dot",
    title: "paths with ..",
    requirement: "A path that leads outside through `..` is `path_confinement` in every call. [S1-AC-7]",
    async run({ sandbox, hostDirectory }) {
      const host = await hostDirectory();
      await sandbox.makeDirectory("a");
      for (const path of ["../escape", "..", "a/../../escape", `${sandbox.workDir}/../escape`, "./../a"]) {
        for (const [name, call] of Object.entries(pathCalls(sandbox, path, host))) {
          await refuses("path_confinement", `${name} of ${path}`, call);
        }
      }
      equal(await sandbox.listDirectory(), ["a"], "nothing was written, not even the good one of several");
    },
  },
  {
    id: "paths.absolute-outside",
    title: "absolute paths outside",
    requirement: "An absolute path outside is `path_confinement` in every call, with the message of the contract.",
    async run({ sandbox, hostDirectory }) {
      const host = await hostDirectory();
      for (const path of ["/etc/passwd", "/", "/tmp/x", host, "/proc/self/environ", "//etc/passwd"]) {
        for (const [name, call] of Object.entries(pathCalls(sandbox, path, host))) {
          const error = await refuses("path_confinement", `${name} of ${path}`, call);
          includes(error.message, "path confinement violation: ", "message");
          includes(error.message, " is outside base directory", "message");
        }
      }
      await sandbox.writeFile(`${sandbox.workDir}/etc/passwd`, "x");
      equal(await sandbox.readFile("etc/passwd"), "x", "a path that only looks alike");
    },
  },
  {
    id: "paths.prefix-twin",
    title: "a name with the same prefix",
    requirement: "A directory whose name only starts like the work directory's is outside.",
    async run({ sandbox, hostDirectory }) {
      const host = await hostDirectory();
      const base = sandbox.workDir.slice(sandbox.workDir.lastIndexOf("/") + 1);
      for (const path of [`${sandbox.workDir}x`, `${sandbox.workDir}-2/file`, `../${base}x`, `../${base}x/file`]) {
        for (const [name, call] of Object.entries(pathCalls(sandbox, path, host))) {
          await refuses("path_confinement", `${name} of ${path}`, call);
        }
      }
      await sandbox.writeFile(`../${base}/file`, "x");
      equal(await sandbox.readFile(`../${base}/./file`), "x", "out and in again stays inside");
    },
  },
  {
    id: "paths.invalid",
    title: "invalid paths",
    requirement: "An empty path, a NUL byte, 5,000 characters or a non-string is `invalid_path` in every call.",
    async run({ sandbox, hostDirectory }) {
      const host = await hostDirectory();
      const bad: unknown[] = ["", "a\0b", "a/\0", "x".repeat(5_000), "a/".repeat(2_500), 42, null];
      for (const path of bad) {
        const calls = pathCalls(sandbox, path as string, host);
        for (const [name, call] of Object.entries(calls)) {
          if (typeof path !== "string" && name === "writeFiles") continue;
          await refuses(["invalid_path", "invalid_argument"], `${name} of ${JSON.stringify(path)?.slice(0, 20)}`, call);
        }
      }
      equal(await sandbox.listDirectory(), [], "nothing was written");
    },
  },
  {
    id: "paths.name-too-long",
    title: "a name of 256 bytes",
    requirement: "A name too long for the system is `invalid_path`, and never treated as a missing file.",
    async run({ sandbox }) {
      const codes = ["invalid_path", "invalid_argument"] as const;
      await refuses(codes, "writeFile", () => sandbox.writeFile("x".repeat(256), "x"));
      await refuses(codes, "makeDirectory", () => sandbox.makeDirectory(`a/${"ü".repeat(128)}`));
      await sandbox.writeFile("x".repeat(255), "x");
      equal(await sandbox.readFile("x".repeat(255)), "x", "a name of 255 bytes");
    },
  },
  {
    id: "paths.no-special-meaning",
    title: "characters without a special meaning",
    requirement: "A backslash, a drive letter, a tilde, a percent sign or a scheme is part of a name and nothing else.",
    async run({ sandbox }) {
      const names = ["C:\\x", "..\\up", "~", "$HOME", "%2e%2e", "..."];
      for (const name of names) await sandbox.writeFile(name, name);
      equal(await sandbox.listDirectory(), [...names].sort(), "listDirectory");
      for (const name of names) equal(await sandbox.readFile(name), name, name);
      await sandbox.writeFile("file://etc/passwd", "inside");
      equal(await sandbox.readFile("file:/etc/passwd"), "inside", "a scheme is a directory");
    },
  },
  {
    id: "paths.normalised",
    title: "paths that need normalising",
    requirement: "Dots, doubled and trailing slashes lead to the same file, relative or absolute.",
    async run({ sandbox }) {
      await sandbox.writeFile("a/b/file", "x");
      const w = sandbox.workDir;
      for (const path of [
        "a/b/file",
        "./a/./b/file",
        "a//b///file",
        "a/c/../b/file",
        `${w}/a/b/file`,
        `${w}//a/b/../b/file`,
      ]) {
        equal(await sandbox.readFile(path), "x", path);
      }
      equal(await sandbox.listDirectory("a/b/"), ["file"], "with a slash at the end");
      equal(await sandbox.listDirectory(w), ["a"], "the work directory by its name");
    },
  },
  {
    id: "paths.set-workdir",
    title: "changing the directory",
    requirement: "After `setWorkdir` relative paths and commands start there; `workDir` and absolute paths stay.",
    async run({ sandbox }) {
      const { workDir } = sandbox;
      await sandbox.writeFile("a/b/file", "deep");
      await sandbox.setWorkdir("a");
      equal(await sandbox.readFile("b/file"), "deep", "readFile");
      equal(await sandbox.listDirectory(), ["b"], "listDirectory");
      equal((await sandbox.exec({ argv: ["/bin/pwd"] })).stdout, `${workDir}/a\n`, "exec");
      await sandbox.setWorkdir("b");
      equal((await sandbox.shell("pwd")).stdout, `${workDir}/a/b\n`, "relative to the one before");
      equal(await sandbox.readFile("../../a/b/file"), "deep", "up, but inside");
      equal(await sandbox.readFile(`${workDir}/a/b/file`), "deep", "absolute");
      await refuses("path_confinement", "three up", () => sandbox.readFile("../../../x"));
      await sandbox.writeFile("made", "x");
      equal(await script(sandbox, 'cat "$1/a/b/made"', workDir), "x", "what was written");
      await sandbox.setWorkdir(workDir);
      equal([sandbox.workDir, await sandbox.listDirectory()], [workDir, ["a"]], "back again");
    },
  },
  {
    id: "paths.set-workdir-refused",
    title: "changing to an invalid directory",
    requirement: "`setWorkdir` to a missing directory is `not_found`, to a file an error, and nothing changes.",
    async run({ sandbox }) {
      await sandbox.writeFile("file", "x");
      await refuses("not_found", "missing", () => sandbox.setWorkdir("missing"));
      await refuses(["invalid_path", "not_found"], "a file", () => sandbox.setWorkdir("file"));
      await refuses("path_confinement", "outside", () => sandbox.setWorkdir(".."));
      equal(await sandbox.readFile("file"), "x", "relative paths start where they did");
    },
  },
];
