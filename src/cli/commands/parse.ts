import { parseArgs } from "node:util";
import { nearestName } from "../../util/nearest.js";
import { shellQuote } from "../../util/shell.js";
import type { Flags, Parsed } from "../invocation.js";
import type { CliCommand } from "./command.js";
import type { Flag } from "./flags.js";
import { UsageError } from "./usage-error.js";

/** Parses the arguments after a verb; throws a `UsageError` for anything that does not fit. */
export function parseCommandLine(command: CliCommand, args: readonly string[]): Parsed {
  const separator = args.indexOf("--");
  const before = separator === -1 ? args : args.slice(0, separator);
  const argv = separator === -1 ? [] : args.slice(separator + 1);
  const { flags, operands } = readFlags(command, before);
  if (!flags.has("help")) checkOperands(command, operands, separator === -1 ? undefined : argv);
  return { flags, operands, argv };
}

function readFlags(command: CliCommand, args: readonly string[]): { flags: Flags; operands: string[] } {
  const options = Object.fromEntries(
    command.flags.flatMap(({ name, alias, short, value }) => {
      const type = value === undefined ? ("boolean" as const) : ("string" as const);
      return [[name, { type, ...(short && { short }) }], ...(alias === undefined ? [] : [[alias, { type }]])];
    }),
  );
  const { tokens } = parseArgs({
    args: markOmittedValues(command, args),
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const found = new Map<string, string[]>();
  const operands: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") {
      if (command.argv !== "none" && operands.length >= command.operandCount[1]) {
        throw missingSeparator(command, args, token.index);
      }
      operands.push(token.value);
    }
    if (token.kind !== "option") continue;
    const flag = command.flags.find(({ name, alias }) => name === token.name || alias === token.name);
    if (flag === undefined) throw unknownFlag(command, token.rawName);
    found.set(flag.name, [...(found.get(flag.name) ?? []), readValue(flag, token)]);
  }
  for (const { name, repeat, value } of command.flags) {
    if (value === undefined || repeat === true || (found.get(name)?.length ?? 0) < 2) continue;
    throw new UsageError(`--${name} is given twice`, "remove one of them");
  }
  const flags: Flags = {
    has: (name) => found.has(name),
    text: (name) => found.get(name)?.at(-1),
    texts: (name) => found.get(name) ?? [],
  };
  return { flags, operands };
}

/** Marks omitted optional values, so that the next word is not read as the value. */
function markOmittedValues(command: CliCommand, args: readonly string[]): string[] {
  const optional = command.flags.filter(({ isOptional }) => isOptional !== undefined);
  return args.map((word, at) => {
    const flag = optional.find(({ name }) => word === `--${name}`);
    if (flag === undefined) return word;
    const isLeftOut = flag.isOptional === "inline" || (args[at + 1] ?? "-").startsWith("-");
    return isLeftOut ? `${word}=` : word;
  });
}

function readValue(
  flag: Flag,
  token: { rawName: string; value: string | undefined; inlineValue: boolean | undefined },
): string {
  const { rawName, value, inlineValue } = token;
  if (flag.value === undefined) {
    if (inlineValue === true) throw new UsageError(`${rawName} takes no value`, `write only ${rawName}`);
    return "";
  }
  if (value === "" && flag.isOptional !== undefined) return "";
  const isFlag = inlineValue !== true && value?.startsWith("-") === true;
  if (value === undefined || value === "" || isFlag) {
    throw new UsageError(`${rawName} needs a value`, `${rawName} <${flag.value}>: ${flag.help}`);
  }
  return value;
}

/** What people type to see a version. */
export const VERSION_FLAGS: ReadonlySet<string> = new Set(["--version", "-V", "-v"]);

function unknownFlag(command: CliCommand, name: string): UsageError {
  const known = command.flags.map((flag) => `--${flag.name}`);
  const nearest = nearestName(name, known);
  if (VERSION_FLAGS.has(name)) {
    return new UsageError(`unknown flag "${name}" of ${command.name}`, "glovebox --version prints the version");
  }
  return new UsageError(
    `unknown flag "${name}" of ${command.name}`,
    nearest === undefined ? `glovebox help ${command.name} lists the flags` : `did you mean ${nearest}?`,
  );
}

/** `exec ls -la`: the words after the first belong to the command, so don't read them as our flags. */
function missingSeparator({ name }: CliCommand, args: readonly string[], at: number): UsageError {
  const line = [name, ...args.slice(0, at), "--", ...args.slice(at)].map(quoted);
  return new UsageError(`${name} needs "--" before the command`, `glovebox ${line.join(" ")}`);
}

function checkOperands(command: CliCommand, operands: readonly string[], argv: readonly string[] | undefined): void {
  const { name } = command;
  const [least, most] = command.operandCount;
  if (command.argv === "none" && argv !== undefined) {
    throw new UsageError(`${name} takes no command after "--"`, `glovebox help ${name}`);
  }
  if (command.argv === "required" && (argv === undefined || argv.length === 0)) {
    throw new UsageError(`${name} needs a command`, `glovebox ${name} -- echo hello`);
  }
  if (argv?.[0] === "") throw new UsageError("the command's name is empty", `glovebox ${name} -- echo hello`);
  if (operands.length < least) throw new UsageError(`${name} needs ${command.operands}`, `glovebox help ${name}`);
  const extra = operands[most];
  if (extra !== undefined) throw new UsageError(`${name} does not take "${extra}"`, `glovebox help ${name}`);
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : shellQuote([word]);
}
