import { SandboxError } from "../../contracts/errors.js";
import type { ExecOptions, ExecResult } from "../../contracts/types.js";
import { change } from "../support/change.js";
import type { Mutant } from "./mutant.js";

type Exec = (opts: ExecOptions) => Promise<ExecResult>;

function exec(alter: (original: Exec, opts: ExecOptions) => Promise<ExecResult>): NonNullable<Mutant["sandbox"]> {
  return (sandbox) =>
    change(sandbox, {
      exec: (first: ExecOptions | string, args: readonly string[] = [], opts: Omit<ExecOptions, "argv"> = {}) =>
        alter((given) => sandbox.exec(given), typeof first === "string" ? { ...opts, argv: [first, ...args] } : first),
    });
}

/** Mutants in the place of the portable part, for what no driver has a say in. */
export const portableMutants: readonly Mutant[] = [
  {
    name: "truncates without the flag",
    caught: "exec.output.cap",
    because: /^truncated: expected/,
    sandbox: exec(async (original, opts) => ({
      ...(await original(opts)),
      truncated: { stdout: false, stderr: false },
    })),
  },
  {
    name: "counts only what it kept",
    caught: "exec.output.cap",
    because: /^bytes: expected/,
    sandbox: exec(async (original, opts) => {
      const result = await original(opts);
      const bytes = { stdout: result.stdout.length, stderr: result.stderr.length };
      return { ...result, bytes: result.truncated.stdout ? bytes : result.bytes };
    }),
  },
  {
    name: "decodes each piece by itself and splits UTF-8",
    caught: "exec.output.utf8",
    because: /^(std(out|err) differs|one character in three writes)/,
    sandbox: exec(async (original, opts) => {
      let [stdout, stderr] = ["", ""];
      const result = await original({
        ...opts,
        onStdout(chunk) {
          stdout += Buffer.from(chunk).toString("utf8");
          return opts.onStdout?.(chunk);
        },
        onStderr(chunk) {
          stderr += Buffer.from(chunk).toString("utf8");
          return opts.onStderr?.(chunk);
        },
      });
      if (result.truncated.stdout || result.truncated.stderr) return result;
      return { ...result, stdout, stderr };
    }),
  },
  {
    name: "cuts through the middle of a character",
    caught: "exec.output.cap-utf8",
    because: /^(a character is broken|head or tail is lost)/,
    sandbox: exec(async (original, opts) => {
      const result = await original({ ...opts, raw: true });
      const { raw, ...rest } = result;
      if (!result.truncated.stdout || raw === undefined) return result;
      return { ...rest, stdout: Buffer.from(raw.stdout).toString("utf8") };
    }),
  },
  {
    name: "takes only the program of a program and its arguments",
    caught: "exec.form.program",
    because: /^exit code and stdout: expected/,
    sandbox: (sandbox) =>
      change(sandbox, {
        exec: (first: ExecOptions | string) => sandbox.exec(typeof first === "string" ? { argv: [first] } : first),
      }),
  },
  {
    name: "ignores check",
    caught: "exec.check.exit",
    because: /^exit 3: expected command_failed, but it resolved/,
    sandbox: exec((original, { check: _, ...opts }) => original(opts)),
  },
  {
    name: "checks only exit codes and not deadlines",
    caught: "exec.check.timeout",
    because: /^a command that hangs: expected command_failed, but it resolved/,
    sandbox: exec(async (original, opts) => {
      const { check: isChecked, ...rest } = opts;
      if (isChecked !== true) return await original(opts);
      const result = await original(rest);
      return result.timedOut || result.exitCode === 0 ? result : await original(opts);
    }),
  },
  {
    name: "shows what a failed command printed, secrets and all",
    caught: "exec.check.secrets",
    because: /^the message has the secret$/,
    sandbox: exec(async (original, opts) => {
      const { check: isChecked, ...rest } = opts;
      const result = await original(rest);
      if (isChecked !== true || result.exitCode === 0) return result;
      throw new SandboxError("command_failed", `exit code ${result.exitCode}: ${result.stderr}`, { result });
    }),
  },
  {
    name: "throws at a deadline instead of giving a result",
    caught: "deadline.result",
    because: /^timed out$/,
    sandbox: exec(async (original, opts) => {
      const result = await original(opts);
      if (result.timedOut) throw new Error("timed out");
      return result;
    }),
  },
];
