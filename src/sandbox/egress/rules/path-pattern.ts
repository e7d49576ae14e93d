import { isUnclear } from "./request-path.js";

/** A pattern of whole paths: `*` for any text within a segment, `**` for any segments. */
export interface PathPattern {
  readonly text: string;
  readonly segments: readonly string[];
}

const ANY_SEGMENTS = "**";
const ANY_SEGMENT = "*";
/** What a path that is compared never has, so that a pattern with it would match nothing. */
const NEVER_IN_PATHS = /[\p{Cc}\\%;?#]/u;

/** Parses a pattern; gives what is expected instead if it could never match. */
export function parsePathPattern(text: string): PathPattern | { expected: string } {
  if (!text.startsWith("/")) return { expected: "a path that starts with a slash" };
  if (NEVER_IN_PATHS.test(text)) return { expected: "a decoded path without a query, %, ; or \\" };
  const segments = text.slice(1).split("/");
  if (segments.slice(0, -1).includes("") || segments.some(isUnclear)) {
    return { expected: "a path without empty segments, . and .." };
  }
  if (segments.some((segment) => segment.includes(ANY_SEGMENTS) && segment !== ANY_SEGMENTS)) {
    return { expected: "** as a whole segment" };
  }
  return { text, segments };
}

/** Whether a path, given by its decoded segments, matches. */
export function matchesPath({ segments }: PathPattern, path: readonly string[]): boolean {
  return matchesAll(segments, path, ANY_SEGMENTS, matchesSegment);
}

/** Whether a pattern certainly matches all that another matches. */
export function coversPath(bound: PathPattern, asked: PathPattern): boolean {
  return matchesAll(bound.segments, asked.segments, ANY_SEGMENTS, (wide, narrow) => {
    if (narrow === ANY_SEGMENTS) return false;
    return narrow.includes("*") ? wide === ANY_SEGMENT || wide === narrow : matchesSegment(wide, narrow);
  });
}

function matchesSegment(pattern: string, segment: string): boolean {
  return matchesAll([...pattern], [...segment], "*", (one, other) => one === other);
}

/** Matches parts against parts of which one kind stands for any number. Takes at most the product of both lengths, whatever they are. */
function matchesAll(
  pattern: readonly string[],
  parts: readonly string[],
  any: string,
  matches: (pattern: string, part: string) => boolean,
): boolean {
  let [at, star, resume] = [0, -1, 0];
  for (let part = 0; part < parts.length; ) {
    const wanted = pattern[at];
    if (wanted === any) {
      star = at++;
      resume = part;
    } else if (wanted !== undefined && matches(wanted, parts[part] ?? "")) {
      at++;
      part++;
    } else if (star >= 0) {
      at = star + 1;
      part = ++resume;
    } else return false;
  }
  return pattern.slice(at).every((rest) => rest === any);
}
