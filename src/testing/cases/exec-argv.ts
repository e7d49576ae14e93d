import { check, equal, refuses } from "../assert.js";
import { finishes, script, scriptArgv } from "../script.js";
import type { ConformanceCase } from "../types.js";

const PRINT_ARGS = 'for a do printf "%s\\0" "$a"; done';

const AWKWARD = [
  "; touch canary",
  "$(touch canary)",
  "`touch canary`",
  "&& touch canary",
  "| touch canary",
  "$HOME",
  "*",
  "~",
  "a b",
  " leading and trailing ",
  "line\nbreak\r\n",
  "tab\t",
  "'single' \"double\" \\back\\",
  "",
  "-n",
  "--",
  "ünïcödé € 日本 👩‍💻",
  "",
];

export const execArgvCases: readonly ConformanceCase[] = [
  {
    id: "exec.argv.verbatim",
    title: "arguments arrive byte for byte",
    requirement:
      "Every argument reaches the program exactly as given: no shell splits, expands or drops it. [S1-AC-12]",
    async run({ sandbox }) {
      const result = await sandbox.exec({ argv: scriptArgv(PRINT_ARGS, ...AWKWARD), raw: true });
      equal(result.exitCode, 0, "exit code");
      equal(result.stdout.split("\0"), [...AWKWARD, ""], "arguments in the sandbox");
      equal(await sandbox.stat("canary"), null, "what an interpreted argument would have made");
    },
  },
  {
    id: "exec.argv.no-shell",
    title: "the program name is not a command line",
    requirement: "The first argument is a program name, never a line for a shell. [S1-AC-12]",
    async run({ sandbox }) {
      const result = await sandbox.exec({ argv: ["echo hi > canary"] });
      equal(result.exitCode, 127, "exit code of a program called 'echo hi > canary'");
      equal(await sandbox.stat("canary"), null, "what a shell would have made");
    },
  },
  {
    id: "exec.argv.leading-dash",
    title: "a program name that looks like an option",
    requirement: "A program name that starts with a dash is looked up like any other and never read as an option.",
    async run({ sandbox }) {
      for (const name of ["--help", "-c", "--", "--bind"]) {
        const result = await sandbox.exec({ argv: [name, "/", "/"] });
        equal(result.exitCode, 127, `exit code of a missing program called ${name}`);
        check(result.stderr.length > 0, `no line on stderr for ${name}`);
      }
    },
  },
  {
    id: "exec.argv.many",
    title: "many and long arguments",
    requirement: "5,000 arguments and one of 100,000 bytes arrive whole.",
    async run({ sandbox }) {
      const many = await sandbox.exec({ argv: scriptArgv('echo $#; shift 4999; echo "$1"', ...numbers(5_000)) });
      equal(many.stdout, "5000\n4999\n", "count and last of 5,000 arguments");
      const long = "x".repeat(100_000);
      equal(await script(sandbox, 'printf %s "$1"', long), long, "an argument of 100,000 bytes");
    },
  },
  {
    id: "exec.argv.too-long",
    title: "an argument too long for any system",
    requirement: "An argument of 3 MB is an error or exit 126, never a crash or a hang.",
    async run({ sandbox }) {
      const call = finishes(sandbox, { argv: ["true", "x".repeat(3_000_000)] });
      const result = await call.catch(() => undefined);
      if (result) equal(result.exitCode, 126, "exit code of a call with an argument of 3 MB");
      else await refuses(["invalid_argument", "limit_exceeded"], "an argument of 3 MB", () => call);
    },
  },
  {
    id: "exec.argv.invalid",
    title: "invalid argument vectors",
    requirement: "An empty argv, an empty program name, a NUL byte or a wrong type is `invalid_argument`.",
    async run({ sandbox }) {
      const bad: unknown[] = [[], [""], ["echo", "a\0b"], ["ec\0ho"], "echo hi", ["echo", 1], undefined, [null]];
      for (const argv of bad) {
        const call = () => sandbox.exec({ argv: argv as string[] });
        await refuses("invalid_argument", `argv ${JSON.stringify(argv)}`, call);
      }
    },
  },
  {
    id: "exec.argv.own-program",
    title: "a program in the work directory",
    requirement: "A program named by a relative path is found from the command's directory.",
    async run({ sandbox }) {
      await sandbox.writeFile("bin/tool", '#!/bin/sh\necho "tool $1"\n', { mode: 0o755 });
      equal((await sandbox.exec({ argv: ["bin/tool", "a"] })).stdout, "tool a\n", "bin/tool from the work directory");
      equal((await sandbox.exec({ argv: ["./tool", "b"], cwd: "bin" })).stdout, "tool b\n", "./tool from bin");
    },
  },
  {
    id: "exec.shell",
    title: "a script in a shell",
    requirement: "`shell` runs a script with /bin/sh, with the same options and results as `exec`.",
    async run({ sandbox }) {
      await sandbox.makeDirectory("sub");
      const result = await sandbox.shell('cat; echo "$KIT-$((1+1))" | tr a-z A-Z; pwd; echo err >&2; exit 9', {
        env: { KIT: "env" },
        cwd: "sub",
        stdin: "in ",
      });
      equal(
        [result.exitCode, result.stdout, result.stderr],
        [9, `in ENV-2\n${sandbox.workDir}/sub\n`, "err\n"],
        "exit code, stdout and stderr of the script",
      );
    },
  },
  {
    id: "exec.concurrency",
    title: "twenty commands at once",
    requirement: "Concurrent commands never get each other's input, output, environment or exit code.",
    async run({ sandbox }) {
      const run = async (n: number): Promise<void> => {
        const text = 'cat; echo "out $1 $N"; echo "err $1" >&2; exit "$1"';
        const stdin = `in ${n}\n`.repeat(2_000);
        const result = await finishes(sandbox, { argv: scriptArgv(text, `${n}`), stdin, env: { N: `${n * 7}` } });
        equal(result.exitCode, n, `exit code of command ${n}`);
        equal(result.stdout, `${stdin}out ${n} ${n * 7}\n`, `stdout of command ${n}`);
        equal(result.stderr, `err ${n}\n`, `stderr of command ${n}`);
      };
      await Promise.all(numbers(20).map((n) => run(Number(n))));
    },
  },
  {
    id: "exec.fds",
    title: "no descriptors of the host",
    requirement: "A command starts with descriptors 0, 1 and 2 and no other.",
    async run({ sandbox, skip }) {
      const result = await sandbox.exec({ argv: ["ls", "/proc/self/fd"] });
      check(typeof result.exitCode === "number", "exec returned no result");
      if (result.exitCode !== 0) skip("the sandbox has no /proc/self/fd");
      equal(result.stdout.split("\n"), ["0", "1", "2", "3", ""], "descriptors of ls, 3 being the directory it lists");
    },
  },
];

function numbers(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${i}`);
}
