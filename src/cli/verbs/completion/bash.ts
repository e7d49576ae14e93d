import { shellQuote } from "../../../util/shell.js";
import type { CliCommand, Flag } from "../../commands.js";
import { listerOf } from "./listers.js";

/** The completion script of bash. */
export function bashCompletion(commands: readonly CliCommand[]): string {
  const verbs = commands.map(({ name }) => name).join(" ");
  const values = commands.flatMap(({ name, flags }) => flags.flatMap((flag) => valueCase(name, flag)));
  const flags = commands.map(({ name, flags: all, offers }) => {
    const names = all.map((flag) => `--${flag.name}`).join(" ");
    return `    ${name}) ${operandCase(names, offers ?? [])} ;;`;
  });
  return `_glovebox() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} verb=\${COMP_WORDS[1]} i operands=0
  COMPREPLY=()
  # The = of --flag=value is a word of its own here.
  if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W ${quote(`${verbs} --help --version`)} -- "$cur"))
    return
  fi
  for ((i = 2; i < COMP_CWORD; i++)); do
    if [[ \${COMP_WORDS[i]} == -- ]]; then
      compopt -o default
      return
    fi
    [[ \${COMP_WORDS[i]} == [-=]* || \${COMP_WORDS[i - 1]} == = ]] || ((operands += 1))
  done
  case "$verb $prev" in
${values.join("\n")}
  esac
  case $verb in
${flags.join("\n")}
  esac
}
complete -F _glovebox glovebox
`;
}

/** The completions depend on the number of operands so far; a flag's value counts as one. */
function operandCase(flags: string, offers: NonNullable<CliCommand["offers"]>): string {
  const plain = offer(flags, undefined);
  if (offers.length === 0) return plain;
  const last = offers.length - 1;
  const cases = offers.map((each, at) => {
    const isPath = each === "directories" || each === "files";
    const what = isPath ? `${plain}; ${pathOffer(each, "+=")}` : offer(flags, each);
    return `${at === last ? "*" : at}) ${what} ;;`;
  });
  return `case $operands in ${cases.join(" ")} esac`;
}

function valueCase(verb: string, { name, short, value, isOptional, offers }: Flag): string[] {
  if (value === undefined || isOptional === "inline") return [];
  const patterns = [`"${verb} --${name}"`, ...(short === undefined ? [] : [`"${verb} -${short}"`])].join(" | ");
  return [`    ${patterns}) ${valueOffer(offers)} return ;;`];
}

function valueOffer(offers: Flag["offers"]): string {
  if (offers === "directories" || offers === "files") return `${pathOffer(offers, "=")};`;
  return offers === undefined ? "" : `${offer("", offers)};`;
}

function pathOffer(kind: "directories" | "files", how: "=" | "+="): string {
  return `compopt -o filenames; COMPREPLY${how}($(compgen ${kind === "files" ? "-f" : "-d"} -- "$cur"))`;
}

function offer(words: string, offers: Flag["offers"]): string {
  const more = Array.isArray(offers) ? offers.join(" ") : "";
  const list = quote([words, more].filter(Boolean).join(" "));
  const lister = listerOf(offers);
  const ids = lister === undefined ? "" : `" $(${lister})"`;
  return `COMPREPLY=($(compgen -W ${list}${ids} -- "$cur"))`;
}

function quote(text: string): string {
  return shellQuote([text]);
}
