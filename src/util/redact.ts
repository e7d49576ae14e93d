import { ByteSearch, type Occurrence } from "./redact/byte-search.js";
import { isSecretName, secretForms } from "./secret-forms.js";

const MIN_VALUE_LENGTH = 8;
/** From here on it is faster to look for all at once than for one after the other. */
const MANY = 8;
const registered = new Map<string, string | undefined>();
const holders = new Map<string, number>();
/** Counts the changes of `registered`: a redactor that lives long learns about values that come later. */
let registrations = 0;

/** A shorter text, hidden, would make every other one unreadable. */
const SHORTEST = 4;

/** Those of these values that can be hidden. */
export function hideable(values: readonly string[]): string[] {
  return values.filter(({ length }) => length >= SHORTEST);
}

/** What to hide, besides secrets in the process's environment and registered ones. */
export interface RedactOptions {
  /** More variables; those with a secret name and a value of 8 characters or more are hidden. */
  env?: Readonly<Record<string, string | undefined>>;
  /** More values, hidden whatever their length. */
  secrets?: readonly string[];
}

/** Hides secrets in a stream of text or bytes. */
export interface Redactor<T = string> {
  /** Takes a chunk and returns the part that can't be within a secret anymore. */
  write(chunk: T): T;
  /** Returns the rest. */
  end(): T;
  /** How much of what was written is held back, because it may be the start of a secret. */
  readonly held: number;
}

/** A text to find, and what takes its place. */
export interface Pattern<T = string> {
  readonly text: T;
  readonly label: T;
}

/** The operations that strings and bytes share. */
interface Searchable<T> {
  readonly length: number;
  indexOf(part: T, from?: number): number;
}
interface Kind<T> {
  readonly empty: T;
  unitAt(text: T, at: number): number | undefined;
  part(text: T, start: number, end: number): T;
  join(parts: T[]): T;
}

const STRINGS: Kind<string> = {
  empty: "",
  unitAt: (text, at) => text.charCodeAt(at),
  part: (text, start, end) => text.slice(start, end),
  join: (parts) => parts.join(""),
};
const BYTES: Kind<Buffer> = {
  empty: Buffer.alloc(0),
  unitAt: (bytes, at) => bytes[at],
  part: (bytes, start, end) => bytes.subarray(start, end),
  join: (parts) => (parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts)),
};

/** What finds some patterns in texts. */
interface Search<T> {
  /** All matches that start before `limit`, overlapping ones too, by position and then the longest first. */
  occurrences(text: T, limit: number): Occurrence<Pattern<T>>[];
  /** The first position at which a pattern may start that later text completes. */
  firstUncertain(text: T): number;
}

/** What finds some bytes. To make it takes a while if there are many, so it is kept for as long as they are the same. */
export type PreparedBytes = Search<Buffer>;

/**
 * Hides a value in every later text, as `name` if given. Returns a function that unregisters it; the value stays hidden
 * until every caller that registered it has unregistered it.
 */
export function registerSecret(value: string, name?: string): () => void {
  if (typeof value !== "string" || value === "") throw new TypeError("a secret must be a non-empty string");
  registered.set(value, name);
  registrations += 1;
  holders.set(value, (holders.get(value) ?? 0) + 1);
  let isHeld = true;
  return () => {
    if (!isHeld) return;
    isHeld = false;
    const left = (holders.get(value) ?? 1) - 1;
    holders.set(value, left);
    if (left > 0) return;
    holders.delete(value);
    registered.delete(value);
  };
}

/** Replaces every known secret by `[REDACTED:NAME]`, or `[REDACTED]` when it has no name. */
export function redact(text: string, options: RedactOptions = {}): string {
  const redactor = createRedactor(options);
  return redactor.write(text) + redactor.end();
}

/** Creates a redactor whose result does not depend on where the chunks end. */
export function createRedactor(options: RedactOptions = {}): Redactor {
  const collect = (): Search<string> => searchOf(STRINGS, collectPatterns(options));
  return redactorOf(STRINGS, collect(), collect);
}

/** The same for UTF-8 bytes. Bytes without a secret are returned without a copy. */
export function createByteRedactor(options: RedactOptions = {}): Redactor<Buffer> {
  const collect = (): PreparedBytes =>
    prepareBytes(
      collectPatterns(options).map(({ text, label }) => ({ text: Buffer.from(text), label: Buffer.from(label) })),
    );
  return redactorOf(BYTES, collect(), collect);
}

/** Prepares what finds these bytes. */
export function prepareBytes(patterns: readonly Pattern<Buffer>[]): PreparedBytes {
  const isLong = patterns.every(({ text }) => text.length > 1);
  return patterns.length >= MANY && isLong ? new ByteSearch(patterns) : searchOf(BYTES, patterns);
}

/** Creates a stream filter that puts something in the place of other bytes, wherever the chunks end. */
export function createByteReplacer(prepared: PreparedBytes): Redactor<Buffer> {
  return redactorOf(BYTES, prepared);
}

/** `collect`: all patterns anew, once other values have been registered. */
function redactorOf<T extends Searchable<T>>(
  kind: Kind<T>,
  first: Search<T>,
  collect: () => Search<T> = () => first,
): Redactor<T> {
  let search = first;
  let known = registrations;
  let pending = kind.empty;
  let covered = 0;

  const release = (limit: number): T => {
    const out: T[] = [];
    let done = covered;
    for (const { start, pattern } of search.occurrences(pending, limit)) {
      if (start >= done) out.push(kind.part(pending, done, start), pattern.label);
      done = Math.max(done, start + pattern.text.length);
    }
    out.push(kind.part(pending, done, Math.max(done, limit)));
    covered = Math.max(0, done - limit);
    pending = limit === pending.length ? kind.empty : kind.part(pending, limit, pending.length);
    return kind.join(out);
  };

  return {
    write(chunk) {
      if (known !== registrations) {
        known = registrations;
        search = collect();
      }
      pending = pending.length === 0 ? chunk : kind.join([pending, chunk]);
      return release(search.firstUncertain(pending));
    },
    end: () => release(pending.length),
    get held() {
      return pending.length;
    },
  };
}

function collectPatterns({ env = {}, secrets = [] }: RedactOptions): Pattern[] {
  const named = new Map<string, string | undefined>(registered);
  for (const value of secrets) if (value !== "" && !named.has(value)) named.set(value, undefined);
  for (const variables of [env, process.env]) {
    // Reading a variable of the process costs more than checking its name.
    for (const name of Object.keys(variables).filter(isSecretName)) {
      const value = variables[name];
      if (value === undefined || value.length < MIN_VALUE_LENGTH) continue;
      if (named.get(value) === undefined) named.set(value, name);
    }
  }
  const labels = new Map<string, string>();
  for (const [value, name] of named) {
    const label = name === undefined ? "[REDACTED]" : `[REDACTED:${name}]`;
    for (const form of secretForms(value)) if (!labels.has(form)) labels.set(form, label);
  }
  return [...labels].map(([text, label]) => ({ text, label }));
}

function longestFirst<T extends Searchable<T>>(a: Pattern<T>, b: Pattern<T>): number {
  return b.text.length - a.text.length;
}

function searchOf<T extends Searchable<T>>(kind: Kind<T>, patterns: readonly Pattern<T>[]): Search<T> {
  const sorted = [...patterns].sort(longestFirst);
  return {
    occurrences: (text, limit) => occurrences(text, sorted, limit),
    firstUncertain: (text) => firstUncertain(kind, text, sorted, sorted[0]?.text.length ?? 1),
  };
}

function occurrences<T extends Searchable<T>>(
  text: T,
  patterns: readonly Pattern<T>[],
  limit: number,
): { start: number; pattern: Pattern<T> }[] {
  const found: { start: number; pattern: Pattern<T> }[] = [];
  for (const pattern of patterns) {
    let start = text.indexOf(pattern.text);
    while (start !== -1 && start < limit) {
      found.push({ start, pattern });
      start = text.indexOf(pattern.text, start + 1);
    }
  }
  return found.sort((a, b) => a.start - b.start || b.pattern.text.length - a.pattern.text.length);
}

function firstUncertain<T extends Searchable<T>>(
  kind: Kind<T>,
  text: T,
  patterns: readonly Pattern<T>[],
  longest: number,
): number {
  for (let at = Math.max(0, text.length - longest + 1); at < text.length; at += 1) {
    const rest = text.length - at;
    if (patterns.some((pattern) => pattern.text.length > rest && isPrefix(kind, text, at, pattern.text))) return at;
  }
  return text.length;
}

/** Whether the text from a position to its end is a prefix of the pattern. */
function isPrefix<T extends Searchable<T>>(kind: Kind<T>, text: T, from: number, pattern: T): boolean {
  for (let at = from; at < text.length; at += 1) {
    if (kind.unitAt(text, at) !== kind.unitAt(pattern, at - from)) return false;
  }
  return true;
}
