import { isSecretName, secretForms } from "./secret-forms.js";

const MIN_VALUE_LENGTH = 8;
const registered = new Map<string, string | undefined>();
const holders = new Map<string, number>();

/** What to hide beside the process's own environment and the registered values. */
export interface RedactOptions {
  /** More variables; those with a secret name and a value of 8 characters or more are hidden. */
  env?: Readonly<Record<string, string | undefined>>;
  /** More values, hidden whatever their length. */
  secrets?: readonly string[];
}

/** Hides secrets in a text that comes in pieces. */
export interface Redactor {
  /** Takes a piece and gives back what is certain by now. */
  write(chunk: string): string;
  /** Gives back the rest. */
  end(): string;
}

interface Pattern {
  readonly text: string;
  readonly label: string;
}

/**
 * Hides a value in every later text, under `name` when given. Returns the function that forgets it, once everybody who
 * has registered it did.
 */
export function registerSecret(value: string, name?: string): () => void {
  if (typeof value !== "string" || value === "") throw new TypeError("a secret must be a string that is not empty");
  registered.set(value, name);
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

/** Opens a redactor whose result does not depend on where the pieces were cut. */
export function createRedactor(options: RedactOptions = {}): Redactor {
  const patterns = collectPatterns(options);
  const longest = patterns[0]?.text.length ?? 1;
  let pending = "";
  let covered = 0;

  const release = (border: number): string => {
    let out = "";
    let done = covered;
    for (const { start, pattern } of occurrences(pending, patterns, border)) {
      if (start >= done) out += pending.slice(done, start) + pattern.label;
      done = Math.max(done, start + pattern.text.length);
    }
    out += pending.slice(done, Math.max(done, border));
    covered = Math.max(0, done - border);
    pending = pending.slice(border);
    return out;
  };

  return {
    write(chunk) {
      pending += chunk;
      return release(firstUncertain(pending, patterns, longest));
    },
    end: () => release(pending.length),
  };
}

function collectPatterns({ env = {}, secrets = [] }: RedactOptions): Pattern[] {
  const named = new Map<string, string | undefined>(registered);
  for (const value of secrets) if (value !== "" && !named.has(value)) named.set(value, undefined);
  for (const [name, value] of [...Object.entries(env), ...Object.entries(process.env)]) {
    if (value === undefined || value.length < MIN_VALUE_LENGTH || !isSecretName(name)) continue;
    if (named.get(value) === undefined) named.set(value, name);
  }
  const labels = new Map<string, string>();
  for (const [value, name] of named) {
    const label = name === undefined ? "[REDACTED]" : `[REDACTED:${name}]`;
    for (const form of secretForms(value)) if (!labels.has(form)) labels.set(form, label);
  }
  return [...labels].map(([text, label]) => ({ text, label })).sort((a, b) => b.text.length - a.text.length);
}

/** All matches that start before `border`, also overlapping ones, by place and then the longest first. */
function occurrences(
  text: string,
  patterns: readonly Pattern[],
  border: number,
): { start: number; pattern: Pattern }[] {
  const found: { start: number; pattern: Pattern }[] = [];
  for (const pattern of patterns) {
    let start = text.indexOf(pattern.text);
    while (start !== -1 && start < border) {
      found.push({ start, pattern });
      start = text.indexOf(pattern.text, start + 1);
    }
  }
  return found.sort((a, b) => a.start - b.start || b.pattern.text.length - a.pattern.text.length);
}

/** The first place from where the text to come could still complete a secret. */
function firstUncertain(text: string, patterns: readonly Pattern[], longest: number): number {
  for (let at = Math.max(0, text.length - longest + 1); at < text.length; at += 1) {
    const rest = text.length - at;
    const first = text.charCodeAt(at);
    const open = patterns.some(
      (p) => p.text.length > rest && p.text.charCodeAt(0) === first && p.text.startsWith(text.slice(at)),
    );
    if (open) return at;
  }
  return text.length;
}
