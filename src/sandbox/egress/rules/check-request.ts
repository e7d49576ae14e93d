import type { NetworkRule } from "../../../../contracts/types.js";
import { hostInUrl } from "../host-name.js";
import { type BlockReason, blockedHost, Refusal } from "../refusal.js";
import { entryText } from "./entry-text.js";
import { hasMethodParameter } from "./method-parameter.js";
import { DEFAULT_PORTS, parseEntry, type Rule } from "./network-entry.js";
import { readPath } from "./request-path.js";
import { allowsRequest, deniesRequest, gitRequest, looksAtPath } from "./request-rule.js";

/** What is known of a request before it is forwarded. */
export interface RequestFacts {
  method: string;
  /** With its query, as the program sent it. */
  path: string;
  headers?: readonly (readonly [name: string, value: string])[];
}

/** Where a request goes. */
interface Place {
  readonly host: string;
  readonly port: number;
  /** Whether only private addresses of the host are reached. */
  readonly isPrivate: boolean;
}

/** Headers by which some servers take another method or path than the request line has. Many servers don't tell `_` from `-` in a name, and old ones no sign from another. */
const OVERRIDING: ReadonlySet<string> = new Set([
  ...["x-http-method-override", "x-http-method", "x-method-override"],
  ...["x-original-url", "x-rewrite-url"],
]);

/** Throws a `Refusal` for a request that the rules of its host and port do not allow. */
export function checkRequest(
  host: string,
  port: number,
  { method, path: target, headers = [] }: RequestFacts,
  { allow, deny }: { allow: readonly Rule[]; deny: readonly Rule[] },
): void {
  const rules = [...allow, ...deny].flatMap(({ requests }) => requests ?? []);
  if (rules.length === 0) return;
  const refuse = (why: string, reason: BlockReason): Refusal => new Refusal(403, why, blockedHost(host, port, reason));
  const where = hostInUrl(host);
  const overriding = headers.find(([name]) => OVERRIDING.has(name.toLowerCase().replace(/[^a-z0-9]/g, "-")))?.[0];
  if (overriding !== undefined) {
    throw refuse(
      `the rules for ${where} do not allow the header ${overriding}: it could make another request of this one`,
      "request_unclear",
    );
  }
  if (hasMethodParameter(target)) {
    throw refuse(
      `the rules for ${where} do not allow the parameter _method: it could make another request of this one`,
      "request_unclear",
    );
  }
  const path = readPath(target);
  if (path === undefined && rules.some(looksAtPath)) {
    throw refuse(
      `the rules for ${where} are about paths, and servers could understand this one in different ways: ${shown(target)}`,
      "request_unclear",
    );
  }
  const request = { method, path };
  const denying = deny.find(({ requests }) => requests !== undefined && deniesRequest(requests, request));
  if (denying !== undefined) {
    const what = `${method} ${shown(target)}`;
    throw refuse(`${denying.name} (${entryText(denying.entry)}) does not allow ${what}`, "denied");
  }
  if (allow.some(({ requests }) => requests === undefined || allowsRequest(requests, request))) return;
  const known = allow.map(({ entry }) => entryText(entry)).join(", ");
  const isPrivate = allow.every((rule) => rule.isPrivate);
  const flag = flagFor({ host, port, isPrivate }, { method, path: target });
  const remedy = flag === undefined ? "" : `\nto allow it: ${flag}`;
  throw refuse(
    `the rules for ${where} do not allow ${method} ${shown(target)}\nthey allow: ${known}${remedy}`,
    "request_not_allowed",
  );
}

/** The rule for a request and those like it: by the same method to the same path or, for git, to the same repository. Undefined if none can say that. */
export function ruleFor(place: Place, { method, path: target }: RequestFacts): NetworkRule | undefined {
  const path = readPath(target);
  if (path === undefined) return undefined;
  const git = gitRequest(method, path);
  const segments = git?.repository ?? path.segments;
  const rule: NetworkRule = {
    ...hostOf(place),
    port: place.port,
    ...(git === undefined ? { methods: [method] } : { git: git.service }),
    paths: [`/${segments.join("/")}`],
  };
  // A star would stand for other paths, too.
  if (segments.some((segment) => segment.includes("*"))) return undefined;
  try {
    parseEntry(rule, "network.allow", { verb: "allow", isHostLoopbackKnown: true });
    return rule;
  } catch {
    return undefined;
  }
}

function hostOf({ host, isPrivate }: Place): Pick<NetworkRule, "host" | "private"> {
  return { host, ...(isPrivate && { private: true }) };
}

/** What to type for a request; undefined if a flag can't have its method. Other characters that a shell or the flag itself reads are left to a wildcard. */
function flagFor(place: Place, request: RequestFacts): string | undefined {
  if (!/^[A-Z][A-Z-]*$/.test(request.method)) return undefined;
  const found: NetworkRule = ruleFor(place, request) ?? { ...hostOf(place), methods: [request.method] };
  const { port: _, paths = [], ...rule } = found;
  const isPlain = paths.length > 0 && paths.every((path) => /^\/[\w/.~@:+-]*$/.test(path));
  const named = DEFAULT_PORTS.includes(place.port) ? rule : { ...rule, port: place.port };
  return `--network 'allow=${entryText({ ...named, paths: isPlain ? paths : ["/**"] })}'`;
}

function shown(target: string): string {
  const path = target.replace(/\?.*$/s, "?…").replace(/[^\x21-\x7e…]/g, "?");
  return path.length > 200 ? `${path.slice(0, 200)}…` : path;
}
