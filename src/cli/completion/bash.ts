import { shellQuote } from "../../util/shell.js";
import type { Command } from "../commands.js";
import type { Flag } from "../flags.js";

/** The completion script of bash. */
export function bashCompletion(commands: readonly Command[]): string {
  const verbs = commands.map(({ name }) => name).join(" ");
  const values = commands.flatMap(({ name, flags }) => flags.flatMap((flag) => valueCase(name, flag)));
  const flags = commands.map(({ name, flags: all, offers }) => {
    const names = all.map((flag) => `--${flag.name}`).join(" ");
    return `    ${name}) ${offer(`${names}`, offers)} ;;`;
  });
  return `_glovebox() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} verb=\${COMP_WORDS[1]} i
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W ${quote(`${verbs} --help --version`)} -- "$cur"))
    return
  fi
  for ((i = 2; i < COMP_CWORD; i++)); do
    if [[ \${COMP_WORDS[i]} == -- ]]; then
      compopt -o default
      return
    fi
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

function valueCase(verb: string, { name, short, value, offers }: Flag): string[] {
  if (value === undefined) return [];
  const patterns = [`"${verb} --${name}"`, ...(short === undefined ? [] : [`"${verb} -${short}"`])].join(" | ");
  return [`    ${patterns}) ${valueOffer(offers)} return ;;`];
}

function valueOffer(offers: Flag["offers"]): string {
  if (offers === "directories") return 'compopt -o filenames; COMPREPLY=($(compgen -d -- "$cur"));';
  if (offers === "files") return 'compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur"));';
  return offers === undefined ? "" : `${offer("", offers)};`;
}

function offer(words: string, offers: Flag["offers"]): string {
  const more = Array.isArray(offers) ? offers.join(" ") : "";
  const list = quote([words, more].filter(Boolean).join(" "));
  const ids = offers === "sandboxes" ? '" $(glovebox ls --quiet 2>/dev/null)"' : "";
  return `COMPREPLY=($(compgen -W ${list}${ids} -- "$cur"))`;
}

function quote(text: string): string {
  return shellQuote([text]);
}
