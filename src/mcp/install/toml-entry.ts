import { isDeepStrictEqual } from "node:util";
import { SandboxError } from "../../../contracts/errors.js";
import type { EntryChange } from "./json-entry.js";

/** Changes the table of a server in TOML. Every other line stays as it is. */
export function editToml(text: string, { file, name, keys, entry }: EntryChange): string {
  const table = [...keys, name];
  const lines = text === "" ? [] : text.split("\n");
  const kinds = kindsOf(lines);
  const isOwn = (header: readonly string[]): boolean => table.every((key, at) => header[at] === key);
  if (lines.some((line, at) => kinds[at] === undefined && isElsewhere(line, table))) {
    throw new SandboxError(
      "conflict",
      `${file} names ${table.join(".")} in another form than [${table.join(".")}]; nothing was changed`,
      {
        retryable: false,
        hint: "change it by hand: glovebox mcp install --print shows the entry",
      },
    );
  }
  let isInside = false;
  const inside = lines.map((_, at) => {
    const kind = kinds[at];
    if (kind !== undefined && kind !== "inside a string") isInside = isOwn(kind);
    return isInside;
  });
  const kept = lines.filter((_, at) => !inside[at]);
  if (entry === undefined) return kept.length === lines.length ? text : tidy(kept, text);
  const own = [`[${table.join(".")}]`, ...Object.entries(entry).map(([key, value]) => `${key} = ${tomlOf(value)}`)];
  const had = lines.filter((line, at) => inside[at] && line.trim() !== "").map((line) => line.trim());
  if (isDeepStrictEqual(had, own)) return text;
  const first = inside.indexOf(true);
  const before = (first === -1 ? kept : kept.slice(0, first)).join("\n").trimEnd();
  const after = (first === -1 ? [] : kept.slice(first)).join("\n").trim();
  return `${[before, own.join("\n"), after].filter((part) => part !== "").join("\n\n")}\n`;
}

function tidy(lines: readonly string[], text: string): string {
  const joined = lines.join("\n").trimEnd();
  return joined === "" ? "" : `${joined}${text.endsWith("\n") ? "\n" : ""}`;
}

/** For each line: the keys of the table that it starts, or that it is inside a string of several lines; else undefined. */
function kindsOf(lines: readonly string[]): (readonly string[] | "inside a string" | undefined)[] {
  let quote: string | undefined;
  return lines.map((line) => {
    const wasInside = quote !== undefined;
    for (const [mark] of line.matchAll(/"""|'''/g)) {
      if (quote === undefined) quote = mark;
      else if (quote === mark) quote = undefined;
    }
    if (wasInside) return "inside a string";
    const header = /^\s*\[{1,2}([^[\]]+)\]{1,2}\s*(?:#.*)?$/.exec(line)?.[1];
    return header === undefined ? undefined : keysOf(header);
  });
}

function keysOf(text: string): string[] {
  return [...text.matchAll(/\s*(?:"([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*\.?/g)].map(
    ([, a, b, c]) => a ?? b ?? c ?? "",
  );
}

/** Whether a line gives the server by a dotted key or as an inline table. */
function isElsewhere(line: string, [group = "", name = ""]: readonly string[]): boolean {
  const key = /^\s*([^=#]+)=/.exec(line)?.[1];
  if (key === undefined) return false;
  const keys = keysOf(key);
  return keys[0] === group && (keys.length === 1 || keys[1] === name);
}

function tomlOf(value: unknown): string {
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return `[${value.map(tomlOf).join(", ")}]`;
  return JSON.stringify(value).replaceAll("\u007f", "\\u007f");
}
