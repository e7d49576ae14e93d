/** A value in a text of JSON, and where it is. Comments and trailing commas are allowed, as in the files of editors. */
export interface JsonNode {
  readonly start: number;
  readonly end: number;
  readonly value: unknown;
  /** The members of an object, in their order. */
  readonly members?: readonly JsonMember[];
}

/** A member of an object. */
export interface JsonMember {
  readonly key: string;
  readonly start: number;
  readonly node: JsonNode;
  /** Where its comma is, if it has one. */
  readonly comma: number | undefined;
}

const SPACE = /(?:[\s\uFEFF]|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y;
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/y;
const SCALAR = /[\w.+-]+/y;
const DEEPEST = 100;

/** Reads a text of JSON that may have comments. Throws a `SyntaxError` if it is none. */
export function parseJsonText(text: string): JsonNode {
  const reader = new Reader(text);
  const node = reader.value(0);
  reader.end();
  return node;
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    this.#skip();
  }

  value(depth: number): JsonNode {
    const start = this.#at;
    if (depth > DEEPEST) throw this.#wrong();
    if (this.#take("{")) return this.#object(start, depth);
    if (this.#take("[")) return this.#array(start, depth);
    const value: unknown = JSON.parse(this.#match(this.#text[start] === '"' ? STRING : SCALAR));
    return { start, end: this.#at, value };
  }

  end(): void {
    this.#skip();
    if (this.#at < this.#text.length) throw this.#wrong();
  }

  #object(start: number, depth: number): JsonNode {
    const members: JsonMember[] = [];
    for (let isLast = false; !this.#closes("}"); ) {
      if (isLast) throw this.#wrong();
      const from = this.#at;
      const key = String(JSON.parse(this.#match(STRING)));
      this.#skip();
      if (!this.#take(":")) throw this.#wrong();
      this.#skip();
      const node = this.value(depth + 1);
      this.#skip();
      const comma = this.#at;
      isLast = !this.#take(",");
      members.push({ key, start: from, node, comma: isLast ? undefined : comma });
    }
    const value = Object.fromEntries(members.map(({ key, node }) => [key, node.value]));
    return { start, end: this.#at, value, members };
  }

  #array(start: number, depth: number): JsonNode {
    const value: unknown[] = [];
    for (let isLast = false; !this.#closes("]"); ) {
      if (isLast) throw this.#wrong();
      value.push(this.value(depth + 1).value);
      this.#skip();
      isLast = !this.#take(",");
    }
    return { start, end: this.#at, value };
  }

  #closes(mark: string): boolean {
    this.#skip();
    return this.#take(mark);
  }

  #skip(): void {
    this.#match(SPACE);
  }

  #take(mark: string): boolean {
    if (this.#text[this.#at] !== mark) return false;
    this.#at += 1;
    return true;
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.#text) ?? [];
    if (found === undefined) throw this.#wrong();
    this.#at += found.length;
    return found;
  }

  #wrong(): SyntaxError {
    return new SyntaxError(`Unexpected text at ${this.#at}`);
  }
}

/** The member of that name; the last, if there are several. */
export function memberOf(node: JsonNode, key: string): JsonMember | undefined {
  return node.members?.findLast((member) => member.key === key);
}

/** Sets a member of an object in the text. All the rest stays as it is. */
export function setMember(text: string, object: JsonNode, key: string, value: unknown): string {
  const known = memberOf(object, key);
  const unit = /^([ \t]+)"/m.exec(text)?.[1] ?? "  ";
  if (known !== undefined) {
    const { start, end } = known.node;
    return text.slice(0, start) + pretty(value, unit, indentAt(text, known.start)) + text.slice(end);
  }
  const last = object.members?.at(-1);
  const closing = object.end - 1;
  if (last !== undefined && !text.slice(last.node.end, closing).includes("\n")) {
    // All on one line.
    const added = `${last.comma === undefined ? ", " : " "}${JSON.stringify(key)}: ${JSON.stringify(value)}`;
    const at = last.comma === undefined ? last.node.end : last.comma + 1;
    return text.slice(0, at) + added + text.slice(at);
  }
  const outer = indentAt(text, object.start);
  const indent = last === undefined ? outer + unit : indentAt(text, last.start);
  const line = `${indent}${JSON.stringify(key)}: ${pretty(value, unit, indent)}`;
  const before = text.slice(0, closing).replace(/[ \t\r\n]*$/, "");
  const start = last === undefined || last.comma !== undefined ? before : withComma(before, last.node.end);
  const comma = last?.comma === undefined ? "" : ",";
  return `${start}\n${line}${comma}\n${outer}${text.slice(closing)}`;
}

/** Takes a member out of an object in the text, and the comma that it leaves over. */
export function removeMember(text: string, object: JsonNode, key: string): string {
  const members = object.members ?? [];
  const at = members.findLastIndex((member) => member.key === key);
  const member = members[at];
  if (member === undefined) return text;
  const end = member.comma === undefined ? member.node.end : member.comma + 1;
  const lineStart = text.lastIndexOf("\n", member.start) + 1;
  const isAlone = text.slice(lineStart, member.start).trim() === "" && /^[ \t\r]*(?:\n|$)/.test(text.slice(end));
  const after = text.slice(end).replace(isAlone ? /^[ \t\r]*\n?/ : /^[ \t]+/, "");
  let before = text.slice(0, isAlone ? lineStart : member.start);
  const previous = members[at - 1];
  if (member.comma === undefined && previous?.comma !== undefined) {
    before = before.slice(0, previous.comma) + before.slice(previous.comma + 1);
    if (!isAlone) before = before.trimEnd();
  }
  const rest = before + after;
  const left = parseAt(rest, object.start);
  const isEmpty = left.members?.length === 0 && rest.slice(left.start + 1, left.end - 1).trim() === "";
  return isEmpty ? `${rest.slice(0, left.start)}{}${rest.slice(left.end)}` : rest;
}

function parseAt(text: string, start: number): JsonNode {
  let found: JsonNode | undefined;
  const look = (node: JsonNode): void => {
    if (node.start === start) found = node;
    for (const member of node.members ?? []) look(member.node);
  };
  const root = parseJsonText(text);
  look(root);
  return found ?? root;
}

function withComma(text: string, at: number): string {
  return `${text.slice(0, at)},${text.slice(at)}`;
}

function pretty(value: unknown, unit: string, indent: string): string {
  return JSON.stringify(value, undefined, unit).replaceAll("\n", `\n${indent}`);
}

/** The space that the line of a place begins with. */
function indentAt(text: string, at: number): string {
  return /^[ \t]*/.exec(text.slice(text.lastIndexOf("\n", at - 1) + 1, at))?.[0] ?? "";
}
