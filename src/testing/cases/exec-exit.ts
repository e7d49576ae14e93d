import { check, equal, includes } from "../assert.js";
import { scriptArgv } from "../script.js";
import type { ConformanceCase } from "../types.js";

export const execExitCases: readonly ConformanceCase[] = [
  {
    id: "exec.exit.codes",
    title: "exit codes",
    requirement: "An exit code from 0 to 255 is returned unchanged and never turned into a signal.",
    async run({ sandbox }) {
      for (const code of [0, 1, 2, 3, 42, 64, 100, 124, 125, 126, 127, 128, 130, 137, 143, 200, 254, 255]) {
        const result = await sandbox.exec({ argv: scriptArgv(`exit ${code}`) });
        const seen = [result.exitCode, result.signal, result.timedOut, result.stdout, result.stderr];
        equal(seen, [code, undefined, false, "", ""], `exit ${code}`);
      }
    },
  },
  {
    id: "exec.exit.signals",
    title: "ended by a signal",
    requirement: "A command that signal n ends has exit code 128+n and the name of the signal.",
    async run({ sandbox }) {
      // Not QUIT, which some shells ignore.
      const signals = { HUP: 1, INT: 2, ABRT: 6, KILL: 9, USR1: 10, SEGV: 11, PIPE: 13, ALRM: 14, TERM: 15 };
      for (const [name, n] of Object.entries(signals)) {
        const result = await sandbox.exec({
          argv: scriptArgv(`ulimit -c 0; echo before; kill -${name} $$; echo after`),
        });
        const seen = [result.exitCode, result.signal, result.timedOut, result.stdout];
        equal(seen, [128 + n, `SIG${name}`, false, "before\n"], `ended by SIG${name}`);
      }
    },
  },
  {
    id: "exec.exit.child-signal",
    title: "a child ended by a signal",
    requirement: "A shell that exits with a child's 137 was not itself ended by a signal.",
    async run({ sandbox }) {
      const result = await sandbox.exec({ argv: scriptArgv("sh -c 'kill -9 $$'; exit $?") });
      equal([result.exitCode, result.signal], [137, undefined], "exit code and signal");
    },
  },
  {
    id: "exec.exit.missing-program",
    title: "a program that does not exist",
    requirement: "A missing program is exit code 127 with a line on stderr that names it.",
    async run({ sandbox }) {
      for (const name of ["no-such-program-here", "./no-such-file", "/no/such/file"]) {
        const result = await sandbox.exec({ argv: [name] });
        equal([result.exitCode, result.stdout, result.signal], [127, "", undefined], name);
        includes(result.stderr, name, "stderr");
      }
    },
  },
  {
    id: "exec.exit.not-executable",
    title: "a file that is not executable",
    requirement:
      "A file without the execute bit, or a directory, is exit code 126 with a line on stderr that names it.",
    async run({ sandbox }) {
      await sandbox.writeFile("plain", "#!/bin/sh\necho ran\n", { mode: 0o644 });
      await sandbox.makeDirectory("folder");
      for (const name of ["./plain", "./folder"]) {
        const result = await sandbox.exec({ argv: [name] });
        equal([result.exitCode, result.stdout, result.signal], [126, "", undefined], name);
        includes(result.stderr, name, "stderr");
      }
    },
  },
  {
    id: "exec.exit.no-format",
    title: "an executable in an unknown format",
    requirement: "An executable file in an unknown format is exit code 126: no shell is tried instead.",
    async run({ sandbox }) {
      await sandbox.writeFile("headless", "echo ran\n", { mode: 0o755 });
      const result = await sandbox.exec({ argv: ["./headless"] });
      equal([result.exitCode, result.stdout], [126, ""], "exit code and stdout");
      check(result.stderr.length > 0, "no line on stderr");
    },
  },
  {
    id: "exec.exit.result",
    title: "the shape of a result",
    requirement: "A result has exit code, both texts, what was truncated, how much was written, and how long it took.",
    async run({ sandbox }) {
      const result = await sandbox.exec({ argv: scriptArgv("printf abc; printf defgh >&2; exit 3") });
      const { durationMs, ...rest } = result;
      equal(
        rest,
        {
          exitCode: 3,
          stdout: "abc",
          stderr: "defgh",
          truncated: { stdout: false, stderr: false },
          bytes: { stdout: 3, stderr: 5 },
          timedOut: false,
          ...(result.oomKilled === undefined ? {} : { oomKilled: false }),
        },
        "result",
      );
      check(Number.isFinite(durationMs) && durationMs >= 0, `durationMs is ${durationMs}`);
    },
  },
];
