import type { CliCommand, Flag } from "../../commands.js";
import { listerOf } from "./listers.js";

/** The completion script of fish. */
export function fishCompletion(commands: readonly CliCommand[]): string {
  const lines = ["complete -c glovebox -f"];
  for (const { name, summary, flags, argv, offers } of commands) {
    const used = `-n ${quote(`__fish_seen_subcommand_from ${name}; and not contains -- -- (commandline -opc)`)}`;
    lines.push(`complete -c glovebox -n __fish_use_subcommand -a ${name} -d ${quote(summary)}`);
    for (const flag of flags) lines.push(`complete -c glovebox ${used} ${flagPart(flag)} -d ${quote(flag.help)}`);
    for (const each of offers ?? []) if (each) lines.push(`complete -c glovebox ${used} ${valuePart(each)}`);
    if (argv !== "none") {
      const behind = quote(`__fish_seen_subcommand_from ${name}; and contains -- -- (commandline -opc)`);
      lines.push(`complete -c glovebox -n ${behind} -F`);
    }
  }
  return `${lines.join("\n")}\n`;
}

function flagPart({ name, short, value, isOptional, offers }: Flag): string {
  const names = short === undefined ? `-l ${name}` : `-s ${short} -l ${name}`;
  return value === undefined || isOptional !== undefined ? names : `${names} -x ${valuePart(offers)}`.trimEnd();
}

function valuePart(offers: Flag["offers"]): string {
  if (offers === "directories") return "-a '(__fish_complete_directories)'";
  if (offers === "files") return "-a '(__fish_complete_path)'";
  const lister = listerOf(offers);
  if (lister !== undefined) return `-a '(${lister})'`;
  return Array.isArray(offers) ? `-a ${quote(offers.join(" "))}` : "";
}

/** Between single quotes, fish treats only the quote and the backslash specially. */
function quote(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}
