import type { NetworkRule } from "../../../../contracts/types.js";
import type { NetworkEntry } from "./network-entry.js";

const WORDS = { fetch: "git-fetch", push: "git-push" } as const;

/** An entry in one line, as `--network` takes it: `private GET+POST api.example.com:8443/v1/** /v2/**`. */
export function entryText(entry: NetworkEntry): string {
  if (typeof entry === "string") return entry;
  const { host, port, methods, paths = [], git, private: isPrivate, plain: isPlain } = entry;
  const [first = "", ...rest] = paths;
  return [
    ...(isPrivate === true ? ["private"] : []),
    ...(isPlain === true ? ["plain"] : []),
    ...(methods === undefined ? [] : [methods.join("+")]),
    ...(git === undefined ? [] : [WORDS[git]]),
    `${port === undefined || !host.includes(":") ? host : `[${host}]`}${port === undefined ? "" : `:${port}`}${first}`,
    ...rest,
  ].join(" ");
}

/** Reads such a line. What its parts may be is checked where rules are. */
export function parseEntryText(text: string): NetworkEntry {
  const words = text.trim().split(/\s+/);
  const at = words.findIndex((word) => !isFlag(word));
  const target = words[at] ?? "";
  const slash = target.includes("://") ? -1 : target.indexOf("/");
  if (words.length === 1 && slash === -1) return text;
  const [host, first] = slash === -1 ? [target, undefined] : [target.slice(0, slash), target.slice(slash)];
  const paths = [...(first === undefined ? [] : [first]), ...words.slice(at + 1)];
  const rule: NetworkRule = { host, ...(paths.length > 0 && { paths }) };
  for (const word of at === -1 ? words : words.slice(0, at)) {
    if (word === "private") rule.private = true;
    else if (word === "plain") rule.plain = true;
    else if (word === WORDS.fetch) rule.git = "fetch";
    else if (word === WORDS.push) rule.git = "push";
    else rule.methods = word.split("+");
  }
  return rule;
}

function isFlag(word: string): boolean {
  return ["private", "plain", WORDS.fetch, WORDS.push].includes(word) || /^[A-Z][A-Z+-]*$/.test(word);
}
