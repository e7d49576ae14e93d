import { isDeepStrictEqual } from "node:util";
import { SandboxError } from "../../../contracts/errors.js";
import type { WrittenEntry } from "./client-files.js";
import { type JsonNode, memberOf, parseJsonText, removeMember, setMember } from "./json-text.js";

/** A change of one server in a configuration. */
export interface EntryChange {
  readonly file: string;
  readonly name: string;
  readonly keys: readonly string[];
  /** What stands for the server; undefined: it is removed. */
  readonly entry: WrittenEntry | undefined;
}

/** Changes the entry of a server in JSON. Everything else stays as it is, comments too. */
export function editJson(text: string, change: EntryChange): string {
  return change.entry === undefined ? removed(text, change) : written(text, change, change.entry);
}

function written(text: string, { file, name, keys }: EntryChange, { own, usual }: WrittenEntry): string {
  let after = text.trim() === "" ? "{}\n" : text;
  const path: string[] = [];
  for (const key of keys) {
    const at = find(after, path, file);
    if (memberOf(at, key) === undefined) after = setMember(after, at, key, {});
    path.push(key);
    find(after, path, file);
  }
  const known = memberOf(find(after, path, file), name)?.node;
  // What the user added to the entry stays, unless it is one of another kind.
  if (known?.members === undefined || memberOf(known, "command") === undefined) {
    return setMember(after, find(after, path, file), name, { ...own, ...usual });
  }
  for (const [key, value] of Object.entries({ ...usual, ...own })) {
    const entry = find(after, [...path, name], file);
    const member = memberOf(entry, key);
    if (member !== undefined && (isDeepStrictEqual(member.node.value, value) || !Object.hasOwn(own, key))) continue;
    after = setMember(after, entry, key, value);
  }
  return after;
}

function removed(text: string, { file, name, keys }: EntryChange): string {
  if (text.trim() === "") return text;
  const path: string[] = [];
  for (const key of keys) {
    if (memberOf(find(text, path, file), key) === undefined) return text;
    path.push(key);
  }
  const servers = find(text, path, file);
  if (memberOf(servers, name) === undefined) return text;
  let after = removeMember(text, servers, name);
  for (; path.length > 0; path.pop()) {
    const parent = find(after, path.slice(0, -1), file);
    const key = path.at(-1) ?? "";
    const { start = 0, end = 0 } = memberOf(parent, key)?.node ?? {};
    if (after.slice(start, end) !== "{}") break;
    after = removeMember(after, parent, key);
  }
  return after;
}

/** The object that the keys lead to. */
function find(text: string, path: readonly string[], file: string): JsonNode {
  let node: JsonNode;
  try {
    node = parseJsonText(text);
  } catch {
    throw notOurs(file, "is not JSON");
  }
  if (node.members === undefined) throw notOurs(file, "is not a JSON object");
  for (const key of path) {
    const next = memberOf(node, key)?.node;
    if (next?.members === undefined) throw notOurs(file, `has no mapping at ${key}`);
    node = next;
  }
  return node;
}

function notOurs(file: string, why: string): SandboxError {
  return new SandboxError("conflict", `${file} ${why}; nothing was changed`, {
    retryable: false,
    hint: "add the entry by hand: glovebox mcp install --print shows it",
  });
}
