import { check, equal, includes, refuses } from "../assert.js";
import { scriptArgv } from "../script.js";
import type { ConformanceCase } from "../types.js";

export const execCheckCases: readonly ConformanceCase[] = [
  {
    id: "exec.form.program",
    title: "a program and its arguments",
    requirement: "`exec(program, args, options)` does the same as `exec({ argv: [program, ...args], ...options })`.",
    async run({ sandbox }) {
      const args = ["-c", 'printf "%s|" "$KIT_A" "$@"', "sh", "$(echo no)", ""];
      const result = await sandbox.exec("/bin/sh", args, { env: { KIT_A: "own" } });
      equal([result.exitCode, result.stdout], [0, "own|$(echo no)||"], "exit code and stdout");
      equal((await sandbox.exec("false")).exitCode, 1, "exit code of a program without arguments");
      const loose = sandbox.exec.bind(sandbox) as (...values: unknown[]) => Promise<unknown>;
      const options = { timeout: 1_000 };
      await refuses("invalid_argument", "options in the place of the arguments", () => loose("true", options));
      await refuses("invalid_argument", "an argument that is no string", () => loose("true", [7]));
      await refuses("invalid_argument", "arguments beside argv", () => loose({ argv: ["true"] }, ["x"]));
      await refuses("invalid_argument", "argv in the options", () => loose("true", [], { argv: ["false"] }));
    },
  },
  {
    id: "exec.check.exit",
    title: "a failure as an error",
    requirement:
      "With `check` a command that exits with another code than 0 is `command_failed`, with its result and the last lines of stderr.",
    async run({ sandbox }) {
      const text = "echo out; i=0; while [ $i -lt 50 ]; do i=$((i+1)); echo line-$i >&2; done; exit 3";
      const error = await refuses("command_failed", "exit 3", () =>
        sandbox.exec({ argv: scriptArgv(text), check: true }),
      );
      equal([error.result?.exitCode, error.result?.stdout], [3, "out\n"], "the result on the error");
      check(error.result?.stderr.startsWith("line-1\n"), "the result on the error has not the whole stderr");
      for (const part of ["exit code 3", "/bin/sh", "line-50"]) includes(error.message, part, "the message");
      check(!error.message.includes("line-1\n"), "the message has all lines of stderr");
      const shell = await refuses("command_failed", "a script", () => sandbox.shell("exit 4", { check: true }));
      equal(shell.result?.exitCode, 4, "the result of a script");
      equal((await sandbox.shell("echo fine", { check: true })).stdout, "fine\n", "a script that succeeds");
      equal((await sandbox.exec({ argv: ["false"], check: false })).exitCode, 1, "exit code without `check`");
    },
  },
  {
    id: "exec.check.timeout",
    title: "a deadline as an error",
    requirement:
      "With `check` a command that reaches its deadline is `command_failed`; the error has the output so far.",
    async run({ sandbox }) {
      const error = await refuses("command_failed", "a command that hangs", () =>
        sandbox.exec({ argv: scriptArgv("echo so far; sleep 60"), timeout: 2_000, check: true }),
      );
      const { result } = error;
      equal([result?.timedOut, result?.exitCode, result?.stdout], [true, 137, "so far\n"], "the result on the error");
      includes(error.message, "2000 ms", "the message");
    },
  },
  {
    id: "exec.check.signal",
    title: "a signal as an error",
    requirement: "With `check` a command that a signal ends is `command_failed`, and the message names the signal.",
    async run({ sandbox }) {
      const error = await refuses("command_failed", "a command that kills itself", () =>
        sandbox.shell("kill -TERM $$; sleep 60", { check: true }),
      );
      equal([error.result?.exitCode, error.result?.signal], [143, "SIGTERM"], "exit code and signal");
      includes(error.message, "SIGTERM", "the message");
    },
  },
  {
    id: "exec.check.secrets",
    title: "no secrets in the error",
    requirement: "The message of `command_failed` has no secret of the sandbox or of the call.",
    async run({ sandbox }) {
      const env = { KIT_API_KEY: "kit-secret-of-the-call" };
      const text = 'echo "the key is $KIT_API_KEY" >&2; exit 1';
      const error = await refuses("command_failed", "a command that prints its key", () =>
        sandbox.exec({ argv: scriptArgv(text, env.KIT_API_KEY), env, check: true }),
      );
      includes(error.message, "the key is ", "the message");
      check(!error.message.includes(env.KIT_API_KEY), "the message has the secret");
      check(!String(error.stack).includes(env.KIT_API_KEY), "the stack has the secret");
      equal(error.result?.stderr, `the key is ${env.KIT_API_KEY}\n`, "stderr of the result");
    },
  },
];
