import { readFileSync } from "node:fs";
import type { NetworkPolicy, NetworkRules } from "../../contracts/types.js";
import { mergeEntries, networkSchema, parseEntryText } from "../sandbox/host.js";
import { defined } from "../util/defined.js";
import { check } from "../util/schema.js";
import { UsageError } from "./commands.js";
import type { Flags } from "./invocation.js";

const FLAG = "--network";
const MAX_FILE = 1 << 20;
/** A port of this host's loopback is opened by the flag itself. */
const inFile = networkSchema({ expected: "none, full or a list named allow", least: 0, isHostLoopbackKnown: false });

/** The network that the flags ask for. */
export async function networkOf(flags: Flags): Promise<{ network?: NetworkPolicy }> {
  const text = flags.text("network");
  return text === undefined ? {} : { network: await readNetwork(text) };
}

/**
 * Reads `none`, `full`, or a list of entries: `allow=a,b,deny=c`. An entry is a name or a rule in one line, such as `GET api.example.com/v1/**`;
 * `@file` is a file with rules.
 */
export async function readNetwork(text: string): Promise<NetworkPolicy> {
  if (text === "none" || text === "full") return text;
  const files: NetworkPolicy[] = [];
  const lists = { allow: [] as NetworkRules["allow"][number][], deny: [] as NetworkRules["allow"][number][] };
  let verb: "allow" | "deny" | undefined;
  for (const part of text.split(",")) {
    const [, word, entry = ""] = /^(?:(allow|deny)=)?(.*)$/s.exec(part) ?? [];
    if (word !== undefined) verb = word as "allow" | "deny";
    if (word === undefined && entry.startsWith("@")) files.push(await readFile(entry.slice(1)));
    else if (verb === undefined || entry.trim() === "") throw wrong(text);
    else lists[verb].push(parseEntryText(entry));
  }
  const [only] = files;
  if (typeof only === "string" && files.length === 1 && verb === undefined) return only;
  const rules = [...files, lists].map((each) => {
    if (typeof each === "string")
      throw new UsageError(`${FLAG} adds to a file that says ${each}`, "remove one of them");
    return each as NetworkRules;
  });
  const deny = mergeEntries(...rules.map((each) => each.deny ?? []));
  const route = Object.assign({}, ...rules.map(({ upstream, ca }) => defined({ upstream, ca }))) as NetworkRules;
  return { ...route, allow: rules.flatMap(({ allow }) => allow), ...(deny.length > 0 && { deny }) };
}

async function readFile(path: string): Promise<NetworkPolicy> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? "unknown";
    throw new UsageError(
      `${FLAG} @${path} can't be read: ${code}`,
      `write ${FLAG} @rules.yaml, with a list named allow in it`,
    );
  }
  if (text.length > MAX_FILE) throw new UsageError(`${FLAG} @${path} has more than ${MAX_FILE} bytes`, "remove rules");
  const { parse } = await import("yaml");
  let value: unknown;
  try {
    value = parse(text, { maxAliasCount: 100 });
  } catch (cause) {
    throw new UsageError(
      `${FLAG} @${path} is not YAML: ${(cause as Error).message.split("\n")[0]}`,
      "see glovebox help exec",
    );
  }
  check(value, inFile, path);
  return value;
}

function wrong(text: string): UsageError {
  return new UsageError(
    `${FLAG} takes a network rule, not "${text}"`,
    "write none, full, @rules.yaml or allow=example.com,example.org",
  );
}
