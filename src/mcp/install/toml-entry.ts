import { SandboxError } from "../../../contracts/errors.js";
import type { WrittenEntry } from "./client-files.js";
import type { EntryChange } from "./json-entry.js";
import { readTomlLines, type TomlLine } from "./toml-lines.js";

/** Changes the table of a server in TOML. Every other line stays as it is. */
export function editToml(text: string, { file, name, keys, entry }: EntryChange): string {
  const table = [...keys, name];
  const lines = text === "" ? [] : text.split("\n");
  const kinds = readTomlLines(lines);
  const [first, end] = regionOf(kinds, table, file);
  const before = lines.slice(0, first);
  const after = lines.slice(end);
  if (entry === undefined) return first === end ? text : joined(before, after);
  const wanted = Object.entries({ ...entry.own, ...entry.usual });
  if (first === end) {
    const added = [`[${table.join(".")}]`, ...wanted.map(([key, value]) => lineOf(key, value))];
    return `${[text.trimEnd(), added.join("\n")].filter((part) => part !== "").join("\n\n")}\n`;
  }
  return [...before, ...changed(lines.slice(first, end), kinds.slice(first, end), entry), ...after].join("\n");
}

/** The lines of a server's table and its tables below: from the first, up to before the second. */
function regionOf(kinds: readonly TomlLine[], table: readonly string[], file: string): [number, number] {
  let [first, end] = [-1, -1];
  let current: readonly string[] = [];
  const isOwn = (keys: readonly string[]): boolean => table.every((key, at) => keys[at] === key);
  for (const [at, line] of kinds.entries()) {
    if (line.is === "table") current = line.keys;
    const isBeside = !isOwn(current) && line.is === "key" && isOrHas([...current, ...line.keys], table);
    const isApart = isOwn(current) && line.is === "table" && first !== -1 && kinds.slice(end, at).some(isContent);
    if (isBeside || isApart) throw inAnotherForm(file, table);
    if (!isOwn(current) || line.is === "blank") continue;
    if (first === -1) first = at;
    end = at + 1;
  }
  return first === -1 ? [kinds.length, kinds.length] : [first, end];
}

function isContent({ is }: TomlLine): boolean {
  return is !== "blank";
}

/** Whether a key gives the server, a part of it, or what it is in as one value. */
function isOrHas(keys: readonly string[], table: readonly string[]): boolean {
  return table.every((key, at) => at >= keys.length || keys[at] === key);
}

/** The table with the values that are ours. What the user added to it stays, unless it is for a server of another kind. */
function changed(lines: readonly string[], kinds: readonly TomlLine[], { own, usual }: WrittenEntry): string[] {
  const missing = new Map(Object.entries({ ...own, ...usual }));
  const below = kinds.findIndex(({ is }, at) => at > 0 && is === "table");
  const size = below === -1 ? lines.length : below;
  const isKnown = kinds.slice(0, size).some((line) => line.is === "key" && line.keys[0] === "command");
  const kept: string[] = [];
  let isReplaced = false;
  for (let at = 0; at < size; at += 1) {
    const [line = "", kind] = [lines[at], kinds[at]];
    if (kind?.is === "more" && isReplaced) continue;
    isReplaced = false;
    const key = kind?.is === "key" ? (kind.keys[0] ?? "") : undefined;
    if (key === undefined || (isKnown && !missing.has(key))) kept.push(line);
    else if (isKnown && !Object.hasOwn(own, key)) kept.push(line);
    else {
      isReplaced = true;
      if (missing.has(key)) kept.push(isSame(line, key, own[key]) ? line : lineOf(key, missing.get(key)));
    }
    if (key !== undefined) missing.delete(key);
  }
  const added = [...missing].map(([key, value]) => lineOf(key, value));
  let last = kept.length;
  while (kept[last - 1]?.trim() === "") last -= 1;
  return [...kept.slice(0, last), ...added, ...kept.slice(last), ...(isKnown ? lines.slice(size) : [])];
}

function isSame(line: string, key: string, value: unknown): boolean {
  return line.trim() === lineOf(key, value);
}

function joined(before: readonly string[], after: readonly string[]): string {
  const [start, rest] = [before.join("\n").trimEnd(), after.join("\n").trim()];
  const text = [start, rest].filter((part) => part !== "").join("\n\n");
  return text === "" ? "" : `${text}\n`;
}

function inAnotherForm(file: string, table: readonly string[]): SandboxError {
  return new SandboxError(
    "conflict",
    `${file} names ${table.join(".")} in another form than [${table.join(".")}]; nothing was changed`,
    { retryable: false, hint: "change it by hand: glovebox mcp install --print shows the entry" },
  );
}

function lineOf(key: string, value: unknown): string {
  return `${key} = ${tomlOf(value)}`;
}

function tomlOf(value: unknown): string {
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return `[${value.map(tomlOf).join(", ")}]`;
  return JSON.stringify(value).replaceAll("\u007f", "\\u007f");
}
