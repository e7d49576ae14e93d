import { SandboxError, type SandboxErrorCode, toSandboxError } from "../../contracts/errors.js";
import { toInert } from "../util/inert-text.js";
import { COMMANDS, UsageError } from "./commands.js";
import { nameFlags } from "./flag-names.js";
import type { Screen } from "./terminal.js";

const USAGE = 2;
const FAILURE = 1;

/** The hint for each code, for errors without one of their own. */
const HINTS: Readonly<Record<Exclude<SandboxErrorCode, "internal">, string>> = {
  path_confinement: "use a path in the work directory of the sandbox",
  not_regular_file: "name a regular file, or one that does not exist yet",
  command_not_allowed: "add the command to the option allow",
  command_failed: "the last lines of its output say why",
  closed: "open the sandbox again; glovebox ls lists the kept ones",
  tampered: "the data was changed or damaged, so Glovebox used none of it",
  invalid_argument: "see glovebox help <verb>",
  invalid_path: "see glovebox help <verb>",
  not_found: "check the spelling",
  unsupported: "glovebox doctor shows what each backend supports on this machine",
  unauthenticated: "glovebox doctor lists the variables to set",
  permission_denied: "check the owner and the permissions of the path",
  unavailable: "try again; glovebox doctor shows what works on this machine",
  backend_lost: "try again; glovebox doctor shows what works on this machine",
  aborted: "run it again; glovebox reap removes anything left over",
  limit_exceeded: "pass less data, or put it into a file",
  no_space: "free some space; glovebox reap removes what dead processes left behind",
  conflict: "end the process that uses it, or choose another name",
  missing_dependency: "glovebox doctor shows what is missing and how to install it",
  no_isolation: "glovebox doctor shows why, and how to fix it",
};

/** A failure as data: for `--json`, for the two lines on a terminal, and for the exit code. */
export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  readonly exitCode: number;
}

/** Turns any error into what the user needs to know. */
export function toFailure(error: unknown): Failure {
  if (error instanceof UsageError) {
    return { code: "usage", message: error.message, hint: error.hint, exitCode: USAGE };
  }
  const { code, message, hint } = toSandboxError(error);
  const exitCode = code === "invalid_argument" || code === "invalid_path" ? USAGE : FAILURE;
  return { code, message, hint: hint ?? (code === "internal" ? INTERNAL_HINT : HINTS[code]), exitCode };
}

const INTERNAL_HINT = "this is a bug in Glovebox; set GLOVEBOX_DEBUG=1 to see where it happened";

/** Prints an error and returns its exit code. */
export async function reportError(
  error: unknown,
  screen: Screen,
  { isJson, isPrinted, verb = "<verb>" }: { isJson: boolean; isPrinted: boolean; verb?: string | undefined },
): Promise<number> {
  const { exitCode, code, message, hint } = toFailure(error);
  const flags = COMMANDS.find(({ name }) => name === verb)?.flags ?? [];
  const failure = { code, message: nameFlags(message, flags), hint: nameFlags(hint.replace("<verb>", verb), flags) };
  const partial = error instanceof SandboxError ? error.partial : undefined;
  if (isJson) await screen.printJson({ error: failure, ...(partial !== undefined && { partial }) });
  if (isPrinted) await screen.printError(failure.message, failure.hint);
  if (process.env["GLOVEBOX_DEBUG"] && error instanceof Error) {
    await screen.write(screen.stderr, `${toInert(error.stack ?? "")}\n`);
  }
  return exitCode;
}
