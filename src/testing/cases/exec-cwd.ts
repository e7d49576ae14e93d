import { equal, includes, refuses } from "../assert.js";
import { script } from "../script.js";
import type { ConformanceCase } from "../types.js";

export const execCwdCases: readonly ConformanceCase[] = [
  {
    id: "exec.cwd.default",
    title: "the default directory",
    requirement: "A command starts in the work directory. [S1-AC-3]",
    async run({ sandbox }) {
      const result = await sandbox.exec({ argv: ["/bin/pwd"] });
      equal([result.exitCode, result.stdout], [0, `${sandbox.workDir}\n`], "pwd");
    },
  },
  {
    id: "exec.cwd.absolute",
    title: "an absolute directory",
    requirement: "An absolute cwd inside the work directory is where the command starts. [S1-AC-3]",
    async run({ sandbox }) {
      await sandbox.makeDirectory("a/b c");
      const result = await sandbox.exec({ argv: ["/bin/pwd"], cwd: `${sandbox.workDir}/a/b c` });
      equal(result.stdout, `${sandbox.workDir}/a/b c\n`, "pwd");
    },
  },
  {
    id: "exec.cwd.relative",
    title: "a relative directory",
    requirement:
      "A relative cwd starts from the current work directory, and `.` and inner `..` are resolved. [S1-AC-3]",
    async run({ sandbox }) {
      await sandbox.makeDirectory("a/b");
      for (const cwd of ["a", "./a", "a/b/..", "a/"]) {
        equal(
          (await sandbox.exec({ argv: ["/bin/pwd"], cwd })).stdout,
          `${sandbox.workDir}/a\n`,
          `pwd with cwd ${cwd}`,
        );
      }
    },
  },
  {
    id: "exec.cwd.missing",
    title: "a directory that does not exist",
    requirement: "A missing cwd is `not_found`, and nothing is started.",
    async run({ sandbox }) {
      await refuses("not_found", "cwd missing", () => sandbox.exec({ argv: ["true"], cwd: "missing" }));
      await refuses("not_found", "cwd missing in spawn", () => sandbox.spawn({ argv: ["true"], cwd: "missing/too" }));
      await sandbox.makeDirectory("missing");
      equal((await sandbox.exec({ argv: ["true"], cwd: "missing" })).exitCode, 0, "exit code once it exists");
    },
  },
  {
    id: "exec.cwd.not-a-directory",
    title: "a file as the directory",
    requirement: "A cwd that is a file is an error, never a command that runs elsewhere.",
    async run({ sandbox }) {
      await sandbox.writeFile("file", "x");
      const codes = ["not_found", "invalid_path", "not_regular_file"] as const;
      await refuses(codes, "cwd is a file", () => sandbox.exec({ argv: ["true"], cwd: "file" }));
    },
  },
  {
    id: "exec.cwd.outside",
    title: "a directory outside",
    requirement: "A cwd that leads outside the work directory is `path_confinement`. [S1-AC-4]",
    async run({ sandbox }) {
      const parent = sandbox.workDir.slice(0, sandbox.workDir.lastIndexOf("/")) || "/";
      for (const cwd of [
        "/",
        "/tmp",
        "/etc",
        "..",
        "a/../..",
        parent,
        `${sandbox.workDir}x`,
        `${sandbox.workDir}/../x`,
      ]) {
        const error = await refuses("path_confinement", `cwd ${cwd}`, () => sandbox.exec({ argv: ["true"], cwd }));
        includes(error.message, "path confinement violation: ", "message");
        includes(error.message, "is outside base directory", "message");
      }
      equal((await sandbox.exec({ argv: ["true"], cwd: "." })).exitCode, 0, "exit code in a directory inside");
    },
  },
  {
    id: "exec.cwd.proc",
    title: "a directory through /proc",
    requirement: "A cwd below /proc, direct or through a link, is `path_confinement` or not found, never a way out.",
    async run({ sandbox }) {
      for (const cwd of ["/proc/self/cwd", "/proc/self/fd/7", "/proc/1/root", "/proc/self/cwd/.."]) {
        await refuses("path_confinement", `cwd ${cwd}`, () => sandbox.exec({ argv: ["true"], cwd }));
      }
      await script(sandbox, "ln -s /proc/self/cwd here; ln -s /proc/self/fd/7 fd; ln -s /proc/1/root root");
      for (const cwd of ["here", "fd", "root"]) {
        const codes = ["path_confinement", "not_found"] as const;
        await refuses(codes, `cwd ${cwd}, a link into /proc`, () => sandbox.exec({ argv: ["true"], cwd }));
      }
    },
  },
  {
    id: "exec.cwd.link-out",
    title: "a link that leads outside as the directory",
    requirement: "A cwd that is, or goes through, a symbolic link that leads outside is `path_confinement`. [S1-AC-4]",
    async run({ sandbox }) {
      await script(sandbox, "ln -s /usr out && ln -s .. up && mkdir in && ln -s in within");
      for (const cwd of ["out", "out/bin", "up"]) {
        await refuses("path_confinement", `cwd ${cwd}`, () => sandbox.exec({ argv: ["true"], cwd }));
      }
      const result = await sandbox.exec({ argv: ["/bin/pwd"], cwd: "within" });
      includes(result.stdout, sandbox.workDir, "a link that stays inside works");
    },
  },
];
