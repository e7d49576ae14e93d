import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import {
  COMMANDS,
  commandHelp,
  findCommand,
  generalHelp,
  parseCommandLine,
  shortHelp,
  VERSION_FLAGS,
} from "./commands.js";
import { withNameSets } from "./name-sets.js";
import { reportError, toFailure } from "./report-error.js";
import { Interruption, Screen } from "./terminal.js";
import { loadVerb } from "./verbs.js";

/** Runs one command line and returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const interruption = new Interruption();
  let broken: SandboxError | undefined;
  const screen = new Screen(process.stdout, process.stderr, process.env, (error) => {
    if (!GONE.has(error.code)) broken ??= unwritable(error);
    interruption.end("SIGPIPE");
  });
  interruption.listen();
  const code = await dispatch(args, screen, interruption).catch((error: unknown) => {
    // After an interrupt, don't report that the work was aborted.
    const isPrinted = interruption.ending === undefined || toFailure(error).code !== "aborted";
    return reportError(error, screen, { isJson: isJson(args), isPrinted, verb: args[0] });
  });
  if (broken !== undefined) return await reportError(broken, screen, { isJson: false, isPrinted: true });
  return interruption.exitCode ?? code;
}

/** Error codes for an output that nobody reads anymore, or whose terminal is gone. */
const GONE: ReadonlySet<string | undefined> = new Set(["EPIPE", "ECONNRESET", "EIO", "ERR_STREAM_DESTROYED"]);

function unwritable(error: NodeJS.ErrnoException): SandboxError {
  const { code } = toSandboxError(error);
  return new SandboxError(code, `cannot write the output: ${error.message}`, {
    hint: "free some space, or send the output elsewhere",
  });
}

async function dispatch(args: readonly string[], screen: Screen, interruption: Interruption): Promise<number> {
  const [verb, ...rest] = args;
  if (verb === "--help" || verb === "-h") {
    if (rest.includes("--json")) await screen.printJson(COMMANDS);
    else await screen.print(generalHelp(screen.style));
    return 0;
  }
  if (verb === undefined) {
    await screen.print(shortHelp(screen.style));
    return 0;
  }
  const command = findCommand(VERSION_FLAGS.has(verb) ? "version" : verb);
  const parsed = parseCommandLine(command, rest);
  if (parsed.flags.has("help")) {
    if (parsed.flags.has("json")) await screen.printJson(command);
    else await screen.print(commandHelp(command, screen.style));
    return 0;
  }
  const { run } = await loadVerb(command.name);
  const flags = await withNameSets(parsed.flags, screen, interruption.signal);
  return await run({ ...parsed, flags, screen, interruption });
}

function isJson(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return (end === -1 ? args : args.slice(0, end)).some((word) => word === "--json" || word.startsWith("--json="));
}
