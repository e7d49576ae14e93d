/** The path of a request as rules see it. */
export interface RequestPath {
  /** Decoded, without the slashes. */
  readonly segments: readonly string[];
  /** Without the question mark; empty if there is none. */
  readonly query: string;
}

/** Servers disagree about these: where a segment ends, what it is decoded to, whether it counts. */
const AMBIGUOUS = /[^\x21-\x7e]|[\\;#]|%(?:2e|2f|5c|3b|25|3f|23|00)|%(?![0-9a-f]{2})/i;

/** Reads the target of a request to an origin; undefined for a path that two servers could understand differently. */
export function readPath(target: string): RequestPath | undefined {
  const [, path = "", query = ""] = /^([^?]*)\??(.*)$/s.exec(target) ?? [];
  if (!path.startsWith("/") || AMBIGUOUS.test(path)) return undefined;
  const raw = path.slice(1).split("/");
  if (raw.slice(0, -1).includes("") || raw.some((segment) => segment === "." || segment === "..")) return undefined;
  try {
    const segments = raw.map(decodeURIComponent);
    return segments.some(isUnclear) ? undefined : { segments, query };
  } catch {
    return undefined;
  }
}

/** Whether a decoded segment could be another, or several: Windows drops final dots and spaces, and some servers know wide forms of letters. */
export function isUnclear(segment: string): boolean {
  const narrow = segment.normalize("NFKC");
  if (/\p{Cc}/u.test(segment) || /^[. ]+$/.test(narrow)) return true;
  return narrow !== segment && /[/\\]/.test(narrow);
}

/** A path as the most lenient server would read it, for rules that deny: it ignores case, final slashes, dots and spaces. */
export function lenient(segments: readonly string[]): string[] {
  const read = segments.map((segment) =>
    segment
      .normalize("NFKC")
      .toLowerCase()
      .replace(/[. ]+$/, ""),
  );
  return read.length > 1 && read.at(-1) === "" ? read.slice(0, -1) : read;
}
