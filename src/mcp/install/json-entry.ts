import { isDeepStrictEqual } from "node:util";
import { SandboxError } from "../../../contracts/errors.js";

/** A change of one server in a configuration. */
export interface EntryChange {
  readonly file: string;
  readonly name: string;
  readonly keys: readonly string[];
  /** What stands for the server; undefined: it is removed. */
  readonly entry: Readonly<Record<string, unknown>> | undefined;
}

type Mapping = Record<string, unknown>;

/** Changes the entry of a server in JSON. The order of everything else and the indentation stay. */
export function editJson(text: string, { file, name, keys, entry }: EntryChange): string {
  const root = parse(text, file);
  let servers = root;
  const path: [Mapping, string][] = [];
  for (const key of keys) {
    const next = servers[key];
    if (next !== undefined && !isMapping(next)) throw notOurs(file, `has no mapping at ${key}`);
    if (next === undefined && entry === undefined) return text;
    path.push([servers, key]);
    servers[key] = next ?? {};
    servers = servers[key] as Mapping;
  }
  if (entry === undefined) {
    if (!Object.hasOwn(servers, name)) return text;
    delete servers[name];
    for (const [parent, key] of path.reverse())
      if (Object.keys(parent[key] as Mapping).length === 0) delete parent[key];
  } else {
    if (isDeepStrictEqual(servers[name], entry)) return text;
    Object.defineProperty(servers, name, { value: entry, enumerable: true, configurable: true, writable: true });
  }
  const indent = /^([ \t]+)"/m.exec(text)?.[1] ?? "  ";
  return `${JSON.stringify(root, undefined, indent)}${text === "" || text.endsWith("\n") ? "\n" : ""}`;
}

function parse(text: string, file: string): Mapping {
  if (text.trim() === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw notOurs(file, "is not plain JSON; it may have comments, which would be lost");
  }
  if (!isMapping(value)) throw notOurs(file, "is not a JSON object");
  return value;
}

function isMapping(value: unknown): value is Mapping {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function notOurs(file: string, why: string): SandboxError {
  return new SandboxError("conflict", `${file} ${why}; nothing was changed`, {
    retryable: false,
    hint: "add the entry by hand: glovebox mcp install --print shows it",
  });
}
