import { SandboxError, type SandboxErrorCode, toSandboxError } from "../../contracts/errors.js";
import { toInert } from "../util/inert-text.js";
import { UsageError } from "./commands.js";
import type { Screen } from "./terminal.js";

const USAGE = 2;
const FAILURE = 1;

/** What mends a failure of this kind when the failure itself does not say. */
const HINTS: Readonly<Record<Exclude<SandboxErrorCode, "internal">, string>> = {
  path_confinement: "name a path in the work directory of the sandbox",
  not_regular_file: "name a regular file, or a new name",
  command_not_allowed: "it is the option allow that names the commands",
  closed: "glovebox ls lists what is kept",
  tampered: "it is not as Glovebox left it: what comes from inside was not taken over",
  invalid_argument: "glovebox help <verb> shows what each flag takes",
  invalid_path: "glovebox help <verb> shows what each flag takes",
  not_found: "check the path or the id; glovebox ls lists the sandboxes",
  unsupported: "glovebox doctor shows what each backend can keep here",
  unauthenticated: "glovebox doctor names the variables that are looked at",
  permission_denied: "check who owns the path that is named",
  unavailable: "try again; glovebox doctor shows what holds here",
  backend_lost: "try again; glovebox doctor shows what holds here",
  aborted: "nothing was left behind that glovebox reap does not know",
  limit_exceeded: "pass less, or put it into a file",
  no_space: "glovebox reap gives back what is left over",
  conflict: "end what has it first, or name another one",
  missing_dependency: "glovebox doctor shows what is missing and the line that installs it",
  no_isolation: "glovebox doctor shows why, and the line that mends it",
};

/** Options that are flags of another name here. */
const FLAGS: readonly (readonly [RegExp, string])[] = [
  [/^Invalid limits\.(memory|pids|cpus)\b/, "Invalid --$1"],
  [/^Invalid mounts\[\d+\]\.(source|target)\b/, "Invalid $1 of --mount"],
  [/^Invalid network\.allow\[\d+\]/, "Invalid name of --network"],
  [/^Invalid baseDir\b/, "Invalid --base-dir"],
];

/** A failure as data: the document of `--json`, the two lines on a terminal, and the exit code. */
export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  readonly exitCode: number;
}

/** Says of any error what the user is to know. */
export function toFailure(error: unknown): Failure {
  if (error instanceof UsageError) {
    return { code: "usage", message: error.message, hint: error.hint, exitCode: USAGE };
  }
  const { code, message: text, hint } = toSandboxError(error);
  const message = FLAGS.reduce((named, [option, flag]) => named.replace(option, flag), text);
  const exitCode = code === "invalid_argument" || code === "invalid_path" ? USAGE : FAILURE;
  return { code, message, hint: hint ?? (code === "internal" ? INTERNAL_HINT : HINTS[code]), exitCode };
}

const INTERNAL_HINT = "this is a fault of Glovebox; GLOVEBOX_DEBUG=1 shows where it happened";

/** Tells the user what went wrong and gives the exit code for it. */
export async function reportError(
  error: unknown,
  screen: Screen,
  { isJson, isNews, verb = "<verb>" }: { isJson: boolean; isNews: boolean; verb?: string | undefined },
): Promise<number> {
  const { exitCode, code, message, hint } = toFailure(error);
  const failure = { code, message, hint: hint.replace("<verb>", verb) };
  const partial = error instanceof SandboxError ? error.partial : undefined;
  if (isJson) await screen.printJson({ error: failure, ...(partial !== undefined && { partial }) });
  if (isNews) await screen.complain(failure.message, failure.hint);
  if (process.env["GLOVEBOX_DEBUG"] && error instanceof Error) {
    await screen.write(screen.stderr, `${toInert(error.stack ?? "")}\n`);
  }
  return exitCode;
}
