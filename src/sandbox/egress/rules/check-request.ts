import { hostInUrl } from "../host-name.js";
import { type BlockReason, blockedHost, Refusal } from "../refusal.js";
import { entryText } from "./entry-text.js";
import type { Rule } from "./network-entry.js";
import { readPath } from "./request-path.js";
import { allowsRequest, deniesRequest, looksAtPath } from "./request-rule.js";

/** What is known of a request before it is forwarded. */
export interface RequestFacts {
  method: string;
  /** With its query, as the program sent it. */
  path: string;
  headers?: readonly (readonly [name: string, value: string])[];
}

/** Headers by which some servers take another method or path than the request line has. Many servers don't tell `_` from `-` in a name. */
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
  const overriding = headers.find(([name]) => OVERRIDING.has(name.toLowerCase().replaceAll("_", "-")))?.[0];
  if (overriding !== undefined) {
    throw refuse(
      `the rules for ${where} do not allow the header ${overriding}: it could make another request of this one`,
      "request_unclear",
    );
  }
  if (/(?:^|[?&;])_method=/i.test(target.replace(/%5f/gi, "_"))) {
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
    throw refuse(`${denying.name} (${entryText(denying.entry)}) does not allow ${method} ${shown(target)}`, "denied");
  }
  if (allow.some(({ requests }) => requests === undefined || allowsRequest(requests, request))) return;
  const known = allow.map(({ entry }) => entryText(entry)).join(", ");
  throw refuse(
    `the rules for ${where} do not allow ${method} ${shown(target)}\nthey allow: ${known}\nto allow it: ${flagFor(method, host, port, target)}`,
    "request_not_allowed",
  );
}

/** What to type for a request. Characters that a shell or the flag itself reads are left to a wildcard. */
function flagFor(method: string, host: string, port: number, target: string): string {
  const service = /\/info\/refs\?service=git-(upload|receive)-pack$|\/git-(upload|receive)-pack$/.exec(target);
  const word = service === null ? method : (service[1] ?? service[2]) === "upload" ? "git-fetch" : "git-push";
  const place = port === 80 || port === 443 ? hostInUrl(host) : `${hostInUrl(host)}:${port}`;
  const path = target.replace(/\?.*$/s, "");
  const repository = path.replace(/\/(?:info\/refs|git-(?:upload|receive)-pack)$/, "");
  const named = service === null ? path : repository;
  return `--network 'allow=${word} ${place}${/^\/[\w/.~@:+-]*$/.test(named) ? named : "/**"}'`;
}

function shown(target: string): string {
  const path = target.replace(/\?.*$/s, "?…").replace(/[^\x21-\x7e…]/g, "?");
  return path.length > 200 ? `${path.slice(0, 200)}…` : path;
}
