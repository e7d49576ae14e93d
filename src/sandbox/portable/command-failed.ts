import { SandboxError } from "../../../contracts/errors.js";
import type { ExecOptions, ExecResult } from "../../../contracts/types.js";
import { toInert, toInertLine } from "../../util/inert-text.js";
import { redact } from "../../util/sanitize.js";
import { shellQuote } from "../../util/shell.js";
import type { Secrets } from "./events.js";

const SHOWN_COMMAND = 200;
const SHOWN_LINES = 10;
const SHOWN_OUTPUT = 2_000;
/** Redacted before the last lines are cut from it, so that no half of a secret is shown. */
const REDACTED_OUTPUT = 64 * 1024;
/** Such arguments need no quotes to be read. */
const PLAIN = /^[\w@%+=:,./-]+$/;

/** The error of a command that was run with `check` and failed: what it was, how it ended and the last lines that it wrote. */
export function commandFailed(
  opts: ExecOptions,
  timeout: number,
  operation: string,
  result: ExecResult,
  hidden: Secrets,
): SandboxError {
  const written = result.stderr.trim() === "" ? result.stdout : result.stderr;
  const hide = (text: string): string => redact(text, { ...hidden, env: { ...hidden.env, ...opts.env } });
  const command = operation === "shell" ? (opts.argv.at(-1) ?? "") : opts.argv.map(shown).join(" ");
  const lines = hide(written.slice(-REDACTED_OUTPUT)).trimEnd().split("\n").slice(-SHOWN_LINES).join("\n");
  const tail = toInert(lines).slice(-SHOWN_OUTPUT);
  const what = `The command "${toInertLine(clipped(hide(command)))}" ${howItEnded(result, timeout)}`;
  return new SandboxError("command_failed", tail === "" ? what : `${what}:\n${tail}`, {
    operation,
    result,
    hint: result.timedOut
      ? "raise timeout, or start what runs long with spawn; error.result has the output so far"
      : "error.result has the whole output",
  });
}

function howItEnded({ exitCode, signal, timedOut, oomKilled }: ExecResult, timeout: number): string {
  if (timedOut) return `did not end within ${timeout} ms`;
  if (oomKilled === true) return `was killed at the memory limit, with exit code ${exitCode}`;
  if (signal !== undefined) return `was ended by ${signal}, with exit code ${exitCode}`;
  return `failed with exit code ${exitCode}`;
}

function clipped(command: string): string {
  return command.length > SHOWN_COMMAND ? `${command.slice(0, SHOWN_COMMAND)}…` : command;
}

function shown(argument: string): string {
  return PLAIN.test(argument) ? argument : shellQuote([argument]);
}
