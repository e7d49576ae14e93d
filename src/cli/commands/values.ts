import type { Mount, SecretRule } from "../../../contracts/types.js";
import { parseDuration as readDuration } from "../../util/schema.js";
import { UsageError } from "./usage-error.js";

const UNITS: Readonly<Record<string, number>> = { "": 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };
const LONGEST = { ms: 2_147_483_647, words: "24 days" };
const LONGEST_LIFETIME = { ms: 30 * 86_400_000, words: "30 days" };

/** Reads a size (`512m`, `1.5g`, `1048576`) as bytes; units are powers of 1024. */
export function parseSize(flag: string, text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(?:([kmgt])(?:i?b)?|b)?$/i.exec(text) ?? [];
  const bytes = Math.round(Number(number) * (UNITS[(unit ?? "").toLowerCase()] ?? 1));
  if (number === undefined || bytes < 1 || !Number.isSafeInteger(bytes)) {
    throw wrong(flag, text, "a size", "write a number followed by k, m, g or t, for example 512m or 1.5g");
  }
  return bytes;
}

/** Reads a time (`30s`, `500ms`, `2m`, `1h`, `1d`) as milliseconds. Refuses a bare number, which is ambiguous. */
export function parseDuration(flag: string, text: string): number {
  return parseTime(flag, text, LONGEST);
}

/** Reads how long a sandbox may live or be idle. */
export function parseLifetime(flag: string, text: string): number {
  return parseTime(flag, text, LONGEST_LIFETIME);
}

function parseTime(flag: string, text: string, most: { ms: number; words: string }): number {
  if (/^\d+(\.\d+)?$/.test(text)) {
    throw wrong(flag, text, "a time with its unit", `write ${flag} ${text}s or ${flag} ${text}ms`);
  }
  const time = readDuration(text, most.ms);
  if (time === undefined) {
    const hint = `write a number followed by ms, s, m, h or d, for example 30s; at most ${most.words}`;
    throw wrong(flag, text, "a time", hint);
  }
  return time;
}

/** Reads a whole number above zero. */
export function parseCount(flag: string, text: string): number {
  const count = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (count < 1) throw wrong(flag, text, "a whole number above zero", `for example ${flag} 64`);
  return count;
}

/** Reads the number of a port. */
export function parsePort(flag: string, text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535) throw wrong(flag, text, "a port from 1 to 65535", `for example ${flag} 3000`);
  return port;
}

/** Reads a number of cores, fractions allowed. */
export function parseCores(flag: string, text: string): number {
  const cores = /^\d+(\.\d+)?$|^\.\d+$/.test(text) ? Number(text) : 0;
  if (cores <= 0) throw wrong(flag, text, "a number of cores above zero", `for example ${flag} 1.5`);
  return cores;
}

/** Reads `source[:target][:rw]`. */
export function parseMount(flag: string, text: string): Mount {
  const [, rest = "", mode] = /^(.*?)(?::(rw|ro))?$/s.exec(text) ?? [];
  const separator = rest.indexOf(":/");
  const source = separator === -1 ? rest : rest.slice(0, separator);
  const target = separator === -1 ? undefined : rest.slice(separator + 1);
  // A word after the last colon is an unknown mode, unless it is part of a path.
  if (source === "" || /:[^/]*$/.test(target ?? rest)) {
    throw wrong(flag, text, "a mount", "write source[:/target][:rw], for example ./data:/data:rw");
  }
  return { source, ...(target !== undefined && { target }), writable: mode === "rw" };
}

/** Reads `KEY=value`, or `KEY` alone for its value in `host`. Errors never show values: they may be secrets. */
export function parseEnv(
  flag: string,
  texts: readonly string[],
  host: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const env: [string, string][] = texts.map((text) => {
    const separator = text.indexOf("=");
    const key = separator === -1 ? text : text.slice(0, separator);
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) {
      throw wrong(flag, key, "KEY=value or KEY", "a key has letters, digits and _, and does not start with a digit");
    }
    const value = separator === -1 ? host[key] : text.slice(separator + 1);
    if (value === undefined) {
      throw new UsageError(`${flag} ${key}: this variable is not set here`, `set it, or write ${flag} ${key}=value`);
    }
    return [key, value];
  });
  return Object.fromEntries(env);
}

/**
 * Reads `NAME=host,host,field=value`, or `NAME` alone for what is known about a secret of this name. Each name once. Errors show no more than the name:
 * what follows may be the value itself, by mistake.
 */
export function parseSecrets(
  flag: string,
  texts: readonly string[],
  known: Readonly<Record<string, SecretRule>>,
): Record<string, SecretRule> {
  const secrets = new Map<string, SecretRule>();
  for (const text of texts) {
    const [, name = "", list] = /^([A-Za-z_][A-Za-z0-9_]*)(?:=(.*))?$/s.exec(text) ?? [];
    if (name === "")
      throw new UsageError(`${flag} takes NAME=hosts or NAME`, `for example ${flag} API_KEY=api.example.com`);
    if (secrets.has(name)) throw new UsageError(`${flag} ${name} is given twice`, "remove one of them");
    const rule = list === undefined ? known[name] : readSecret(`${flag} ${name}`, list.split(","), known[name]);
    if (rule === undefined || rule.hosts.length === 0) {
      const example = name === "AWS_SECRET_ACCESS_KEY" ? "s3.eu-central-1.amazonaws.com,sign=aws" : "api.example.com";
      const hint = `write ${flag} ${name}=${example}, or name it in your configuration file`;
      throw new UsageError(`${flag} ${name}: it is not known which hosts this secret is for`, hint);
    }
    secrets.set(name, rule);
  }
  return Object.fromEntries(secrets);
}

/** The fields of a secret that a flag may have. What they may be, the sandbox itself checks. */
const SECRET_FIELDS = ["header", "in", "prefix", "sign", "git", "login"] as const;

/** Hosts that are given replace those that are known, and with them all that was known but where the value is. */
function readSecret(what: string, parts: readonly string[], known: SecretRule | undefined): SecretRule {
  const hosts = parts.filter((part) => !part.includes("="));
  if (!hosts.every(looksLikeHost)) {
    const name = what.replace(/^.* /, "");
    const hint = `name the hosts that it is for: ${what}=api.example.com; the value itself is taken from the variable ${name}`;
    throw new UsageError(`${what}: what follows "=" is not a list of hosts`, hint);
  }
  const fields = new Map<string, string[]>();
  for (const part of parts.filter((each) => each.includes("="))) {
    const [, field = "", value = ""] = /^([a-z]+)=(.*)$/s.exec(part) ?? [];
    const hint = `for example ${what}=api.example.com,header=x-api-key; see glovebox help exec`;
    if (!SECRET_FIELDS.some((each) => each === field)) {
      throw new UsageError(`${what} has a field that is none of ${SECRET_FIELDS.join(", ")}`, hint);
    }
    if (value === "") throw new UsageError(`${what}: ${field} is empty`, hint);
    if (fields.has(field) && field !== "login")
      throw new UsageError(`${what} has ${field} twice`, "remove one of them");
    fields.set(field, [...(fields.get(field) ?? []), value]);
  }
  const { login, ...rest } = Object.fromEntries(fields);
  const from = known?.from === undefined || login !== undefined ? {} : { from: known.from };
  const given = Object.fromEntries(
    Object.entries(rest).map(([field, [value]]) => [field, value]),
  ) as Partial<SecretRule>;
  const base = hosts.length > 0 ? { ...from, hosts } : { ...known, hosts: known?.hosts ?? [] };
  return { ...base, ...given, ...(login && { login: { tokenUrls: login } }) };
}

/** Whether an error may show a text that should be a host. A key has digits and no dots, or mixed letters. What hosts may be, the sandbox itself checks. */
function looksLikeHost(text: string): boolean {
  if (text === "" || text === "*" || /^\[?[0-9a-f:.]*:[0-9a-f:.]*\]?(?::\d+)?$/i.test(text)) return true;
  const host = text.replace(/^[a-z]+:\/\//, "").replace(/[/:].*$/s, "");
  if (/^[a-z][a-z-]{0,19}$/.test(host)) return true;
  const isMixed = /[A-Z]/.test(host) && /[a-z]/.test(host) && /\d/.test(host);
  return (
    host.includes(".") && !isMixed && !host.startsWith("eyJ") && host.split(".").every(({ length }) => length <= 63)
  );
}

/** Reads `key=value`, each key once. What keys and values may be, the sandbox itself checks. */
export function parseLabels(flag: string, texts: readonly string[]): Record<string, string> {
  const labels = new Map<string, string>();
  for (const text of texts) {
    const separator = text.indexOf("=");
    if (separator < 1) throw wrong(flag, text, "key=value", `for example ${flag} team=blue`);
    const key = text.slice(0, separator);
    if (labels.has(key)) throw new UsageError(`${flag} ${key} is given twice`, "remove one of them");
    labels.set(key, text.slice(separator + 1));
  }
  return Object.fromEntries(labels);
}

/** Reads one of a few words. */
export function parseWord<T extends string>(flag: string, text: string, words: readonly T[]): T {
  const found = words.find((word) => word === text);
  if (found === undefined) throw wrong(flag, text, words.join(" or "), `write ${flag} ${words[0]}`);
  return found;
}

function wrong(flag: string, text: string, expected: string, hint: string): UsageError {
  return new UsageError(`${flag} takes ${expected}, not "${text}"`, hint);
}
