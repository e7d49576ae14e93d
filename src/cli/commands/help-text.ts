import type { Style } from "../terminal.js";
import { COMMANDS } from "./all.js";
import type { CliCommand } from "./command.js";
import type { Flag } from "./flags.js";

/** The verbs that a new user needs; more examples would not fit on one screen. */
const FIRST_VERBS: ReadonlySet<string> = new Set(["doctor", "exec", "shell", "ls", "init", "run", "task"]);

/** What bare `glovebox` prints: how to start. */
export function shortHelp({ bold, dim }: Style): string {
  const first = COMMANDS.filter(({ name }) => FIRST_VERBS.has(name));
  const width = Math.max(...first.map(({ name }) => name.length));
  return [
    `${bold("glovebox")}: run commands in a sandbox that really confines them`,
    "",
    ...first.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    "",
    `Try: glovebox exec -- echo hello${dim("  # an empty sandbox, no network")}`,
    "glovebox --help lists all verbs; glovebox help <verb> shows flags and examples.",
    "",
  ].join("\n");
}

/** What `glovebox --help` prints. */
export function generalHelp({ bold, dim }: Style): string {
  const width = Math.max(...COMMANDS.map(({ name }) => name.length));
  return [
    `${bold("glovebox")}: run commands in a sandbox that really confines them`,
    "",
    bold("Usage"),
    "  glovebox <verb> [flags] [-- command [argument…]]",
    "",
    bold("Verbs"),
    ...COMMANDS.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    "",
    bold("Examples"),
    ...COMMANDS.filter(({ name }) => FIRST_VERBS.has(name))
      .flatMap(({ examples }) => examples.slice(0, 1))
      .map(([line, meaning]) => `  ${line}${dim(`  # ${meaning}`)}`),
    "",
    "glovebox help <verb> shows flags and examples. glovebox doctor reports what works on this machine.",
    "",
  ].join("\n");
}

/** What `glovebox <verb> --help` prints. */
export function commandHelp(
  { name, summary, operands, flags, notes, examples }: CliCommand,
  { bold, dim }: Style,
): string {
  const labels = flags.map(labelOf);
  const width = Math.max(...labels.map((label) => label.length));
  return [
    `${bold(`glovebox ${name}`)}: ${summary}`,
    "",
    bold("Usage"),
    `  ${["glovebox", name, "[flags]", operands].filter(Boolean).join(" ")}`,
    "",
    bold("Flags"),
    ...flags.map(({ help }, index) => `  ${(labels[index] ?? "").padEnd(width)}  ${help}`),
    "",
    ...(notes === undefined ? [] : [...notes, ""]),
    bold("Examples"),
    ...examples.map(([line, meaning]) => `  ${line}${dim(`  # ${meaning}`)}`),
    "",
  ].join("\n");
}

function labelOf({ name, short, value, isOptional }: Flag): string {
  const shown = isOptional === "inline" ? `[=${value}]` : isOptional === true ? ` [${value}]` : ` <${value}>`;
  const long = value === undefined ? `--${name}` : `--${name}${shown}`;
  return short === undefined ? `    ${long}` : `-${short}, ${long}`;
}
