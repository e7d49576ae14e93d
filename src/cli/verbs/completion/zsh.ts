import { shellQuote } from "../../../util/shell.js";
import type { CliCommand, Flag } from "../../commands.js";
import { LISTED, listerOf } from "./listers.js";

/** The completion script of zsh, to source or to put into a directory of `fpath` as `_glovebox`. */
export function zshCompletion(commands: readonly CliCommand[]): string {
  const verbs = commands.map(({ name, summary }) => `    ${quote(`${name}:${escapeColon(summary)}`)}`);
  const cases = commands.map((command) => {
    const { name, flags } = command;
    const specs = [...flags.flatMap(flagSpecs), ...operandSpecs(command)];
    return [`    ${name})`, `      _arguments -s -S ${specs.join(" \\\n        ")}`, "      ;;"].join("\n");
  });
  return `#compdef glovebox
${LISTED.map((kind) => `${functionOf(kind)}() {\n  compadd -- \${(f)"$(${listerOf(kind)})"}\n}`).join("\n")}
_glovebox() {
  local -a verbs
  verbs=(
${verbs.join("\n")}
  )
  if ((CURRENT == 2)); then
    _describe verb verbs
    return
  fi
  local -i border=$words[(i)--]
  if ((border < CURRENT)); then
    words=("\${(@)words[border + 1, -1]}")
    ((CURRENT -= border))
    _normal
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

function flagSpecs({ name, short, value, isOptional, repeat, help, offers }: Flag): string[] {
  const names = [`--${name}`, ...(short === undefined ? [] : [`-${short}`])];
  const text = `[${help.replace(/[[\]:\\]/g, "\\$&")}]`;
  const argument =
    value === undefined ? "" : `${isOptional !== undefined ? "::" : ":"}${escapeColon(value)}:${action(offers)}`;
  const others = repeat === true ? "*" : `(${names.join(" ")})`;
  const border = value === undefined || isOptional === true ? "" : isOptional === "inline" ? "=-" : "=";
  return names.map((each) => quote(`${others}${each}${each.startsWith("--") ? border : ""}${text}${argument}`));
}

function operandSpecs({ offers = [], operandCount }: CliCommand): string[] {
  const isEndless = operandCount[1] === Number.POSITIVE_INFINITY;
  return offers
    .slice(0, operandCount[1])
    .map((each, at) => quote(`${isEndless ? "*" : at + 1}:operand:${action(each)}`));
}

function action(offers: Flag["offers"]): string {
  if (offers === "directories") return "_files -/";
  if (offers === "files") return "_files";
  if (listerOf(offers) !== undefined) return functionOf(String(offers));
  return Array.isArray(offers) ? `(${offers.join(" ")})` : " ";
}

function functionOf(kind: string): string {
  return `_glovebox_${kind.replaceAll(" ", "_")}`;
}

function escapeColon(text: string): string {
  return text.replace(/[:\\]/g, "\\$&");
}

function quote(text: string): string {
  return shellQuote([text]);
}
