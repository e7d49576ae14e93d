import { shellQuote } from "../../util/shell.js";
import type { Command } from "../commands.js";
import type { Flag } from "../flags.js";

/** The completion script of zsh, to be sourced or put into a directory of `fpath` as `_glovebox`. */
export function zshCompletion(commands: readonly Command[]): string {
  const verbs = commands.map(({ name, summary }) => `    ${quote(`${name}:${escapeColon(summary)}`)}`);
  const cases = commands.map(({ name, flags, argv, offers }) => {
    const specs = [...flags.flatMap(flagSpecs), ...operandSpecs(argv, offers)];
    return [`    ${name})`, `      _arguments -s -S ${specs.join(" \\\n        ")}`, "      ;;"].join("\n");
  });
  return `#compdef glovebox
_glovebox_sandboxes() {
  compadd -- \${(f)"$(glovebox ls --quiet 2>/dev/null)"}
}
_glovebox() {
  local -a verbs
  verbs=(
${verbs.join("\n")}
  )
  if ((CURRENT == 2)); then
    _describe verb verbs
    return
  fi
  shift words
  ((CURRENT--))
  case $words[1] in
${cases.join("\n")}
  esac
}
if [[ $funcstack[1] == _glovebox ]]; then
  _glovebox "$@"
else
  compdef _glovebox glovebox
fi
`;
}

function flagSpecs({ name, short, value, repeat, help, offers }: Flag): string[] {
  const names = [`--${name}`, ...(short === undefined ? [] : [`-${short}`])];
  const text = `[${help.replace(/[[\]:\\]/g, "\\$&")}]`;
  const argument = value === undefined ? "" : `:${escapeColon(value)}:${action(offers)}`;
  const others = repeat === true ? "*" : `(${names.join(" ")})`;
  return names.map((each) => quote(`${others}${each}${text}${argument}`));
}

function operandSpecs(argv: Command["argv"], offers: Flag["offers"]): string[] {
  if (argv !== "none") return [quote("*::command:_normal")];
  return offers === undefined ? [] : [quote(`*:operand:${action(offers)}`)];
}

function action(offers: Flag["offers"]): string {
  if (offers === "directories") return "_files -/";
  if (offers === "files") return "_files";
  if (offers === "sandboxes") return "_glovebox_sandboxes";
  return Array.isArray(offers) ? `(${offers.join(" ")})` : " ";
}

function escapeColon(text: string): string {
  return text.replace(/[:\\]/g, "\\$&");
}

function quote(text: string): string {
  return shellQuote([text]);
}
