import { withoutHopByHop } from "../../hop-by-hop.js";
import { Refusal } from "../../refusal.js";
import type { Framing } from "../../request-body.js";
import { isHeader, isMethod, isTarget, type RequestHead } from "../../request-head.js";

type Header = readonly [name: string, value: string];

const PSEUDO = [":method", ":scheme", ":authority", ":path"] as const;

/** Gives the names and values of a list that alternates them. */
export function pairsOf(list: readonly string[]): Header[] {
  return list.flatMap((name, at) => (at % 2 === 0 ? [[name, list[at + 1] ?? ""] as const] : []));
}

/**
 * Reads the head of a stream as that of a request by HTTP/1.1, so that the same rules decide. Node has looked at it before, but not at everything that
 * matters here: nothing may be in it that another server could understand differently.
 */
export function readStreamHead(list: readonly string[]): RequestHead {
  const pairs = pairsOf(list);
  const [method, scheme, authority, path] = PSEUDO.map((name) => onlyValue(pairs, name));
  const headers = pairs.filter(([name]) => !name.startsWith(":"));
  if (method === undefined || !isMethod(method)) throw new Refusal(400, "the :method is malformed");
  // CONNECT has none of the two, and opens nothing here.
  if (scheme !== "https") throw new Refusal(400, "the :scheme is not https");
  if (path === undefined || !isTarget(path)) throw new Refusal(400, "the :path is malformed");
  if (pairs.length - headers.length !== PSEUDO.length - (authority === undefined ? 1 : 0)) {
    throw new Refusal(400, "the request has a pseudo-header that is not known");
  }
  if (!headers.every(([name, value]) => isHeader(name, value) && name === name.toLowerCase())) {
    throw new Refusal(400, "a header is malformed");
  }
  // A program may say the same in both ways.
  const rest = headers.filter(([name, value]) => name !== "host" || value !== authority);
  return { method, target: path, version: "1.1", headers: [...hostOf(authority), ...rest] };
}

function onlyValue(pairs: readonly Header[], wanted: string): string | undefined {
  const values = pairs.filter(([name]) => name === wanted).map(([, value]) => value);
  if (values.length > 1) throw new Refusal(400, `the request has more than one ${wanted}`);
  return values[0];
}

function hostOf(authority: string | undefined): Header[] {
  return authority === undefined ? [] : [["Host", authority]];
}

/** The head of a stream to an origin. `framing`: what is known of the length of its body. */
export function toStreamHead(
  { method, path, headers }: { method: string; path: string; headers: readonly Header[] },
  framing: Framing,
): Record<string, string | string[]> {
  const host = headers.find(([name]) => name.toLowerCase() === "host")?.[1] ?? "";
  const kept = headers.filter(([name]) => !/^(?:host|content-length)$/i.test(name));
  const length: Header[] = typeof framing === "number" && framing > 0 ? [["content-length", `${framing}`]] : [];
  return {
    ...{ ":method": method, ":scheme": "https", ":authority": host, ":path": path },
    ...toRecord([...kept, ...length]),
  };
}

/** The headers of an answer or its trailer, without those of one connection and what HTTP/2 adds. */
export function receivedFrom(list: readonly string[]): Header[] {
  return withoutHopByHop(pairsOf(list)).filter(([name]) => !name.startsWith(":"));
}

/** Headers as Node takes them for a stream. Those that come more than once stay apart. */
export function toRecord(headers: readonly Header[]): Record<string, string | string[]> {
  const record = Object.create(null) as Record<string, string | string[]>;
  for (const [name, value] of headers) {
    const lower = name.toLowerCase();
    const had = record[lower];
    record[lower] = had === undefined ? value : [had, value].flat();
  }
  return record;
}
