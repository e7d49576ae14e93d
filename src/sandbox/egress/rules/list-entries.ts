import type { NetworkPolicy } from "../../../../contracts/types.js";
import { entryText } from "./entry-text.js";
import { HOST_LOOPBACK, type NetworkEntry } from "./network-entry.js";

/** Whether a network has more than names, which not every backend can enforce. Gives what that is. */
export function needsNetworkRules(network: NetworkPolicy): string | undefined {
  if (typeof network === "string") return undefined;
  const { allow, deny = [], upstream, ca } = network;
  if (upstream !== undefined) return "network.upstream";
  if (ca !== undefined) return "network.ca";
  const at = allow.findIndex((entry) => !isName(entry));
  if (at >= 0) return `network.allow[${at}] (${entryText(allow[at] ?? "")})`;
  return deny.length > 0 ? "network.deny" : undefined;
}

function isName(entry: NetworkEntry): boolean {
  const text = typeof entry === "string" ? entry : entry.host;
  if (new RegExp(`^(?:plain://)?${HOST_LOOPBACK}(?::|$)`, "i").test(text)) return false;
  if (typeof entry === "string") return true;
  const { methods, paths, git, private: isPrivate = false } = entry;
  return methods === undefined && paths === undefined && git === undefined && !isPrivate;
}

/** The entries of a network that has only names. */
export function toNames(allow: readonly NetworkEntry[]): string[] {
  return allow.map((entry) => {
    if (typeof entry === "string") return entry;
    const { host, port, plain = false } = entry;
    const place =
      port === undefined ? host : `${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}`;
    return plain ? `plain://${place}` : place;
  });
}

/** Several lists as one, each entry once, in a stable order. */
export function mergeEntries(...lists: readonly (readonly NetworkEntry[])[]): NetworkEntry[] {
  const all = new Map(lists.flat().map((entry) => [entryText(entry), entry]));
  return [...all].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, entry]) => entry);
}
