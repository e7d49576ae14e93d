/** One import of a file. `kind` says whether it is there at run time, and when. */
export interface Import {
  /** As written; undefined for `import(expression)`. */
  specifier: string | undefined;
  kind: "static" | "type" | "dynamic";
}

const FROM = /\b(?:import|export)\s+(type\s+)?(?:[\w*\s{},$]+?)\s*\bfrom\s*(["'])([^"'\n]+)\2/g;
const BARE = /(?:^|[;\n])\s*import\s*(["'])([^"'\n]+)\1/g;
const CALL = /(?<![\w.$])import\s*\(\s*(?:(["'])([^"'\n]+)\1\s*[),])?/g;

/** Finds the imports of a TypeScript or JavaScript file in its text. */
export function findImports(source: string): Import[] {
  const text = withoutComments(source);
  const found: Import[] = [];
  for (const match of text.matchAll(FROM)) {
    found.push({ specifier: match[3], kind: match[1] === undefined ? "static" : "type" });
  }
  for (const match of text.matchAll(BARE)) found.push({ specifier: match[2], kind: "static" });
  for (const match of text.matchAll(CALL)) found.push({ specifier: match[2], kind: "dynamic" });
  return found;
}

/** Blanks comments and regular expressions, which may hold anything, and keeps strings and templates. */
export function withoutComments(source: string): string {
  let out = "";
  let at = 0;
  while (at < source.length) {
    const end = tokenEnd(source, at, out);
    const token = source.slice(at, end);
    out += isBlanked(token) ? token.replace(/[^\n]/g, " ") : token;
    at = end;
  }
  return out;
}

function isBlanked(token: string): boolean {
  return token.length > 1 && token.startsWith("/");
}

function tokenEnd(source: string, at: number, before: string): number {
  const rest = source.slice(at, at + 2);
  if (rest === "//") return endOr(source.indexOf("\n", at), source);
  if (rest === "/*") return endOr(source.indexOf("*/", at + 2), source, 2);
  const first = source.charAt(at);
  if (first === '"' || first === "'") return quotedEnd(source, at, first, false);
  if (first === "`") return quotedEnd(source, at, first, true);
  if (first === "/" && /(?:^|[(,=:[!&|?{};+>]|\breturn)\s*$/.test(before.slice(-40))) return patternEnd(source, at);
  return at + 1;
}

function endOr(index: number, source: string, length = 0): number {
  return index === -1 ? source.length : index + length;
}

function quotedEnd(source: string, start: number, quote: string, isMultiline: boolean): number {
  for (let at = start + 1; at < source.length; at++) {
    const char = source.charAt(at);
    if (char === "\\") at++;
    else if (char === quote) return at + 1;
    else if (char === "\n" && !isMultiline) return at;
  }
  return source.length;
}

function patternEnd(source: string, start: number): number {
  let inClass = false;
  for (let at = start + 1; at < source.length; at++) {
    const char = source.charAt(at);
    if (char === "\\") at++;
    else if (char === "\n") return start + 1;
    else if (char === "[") inClass = true;
    else if (char === "]") inClass = false;
    else if (char === "/" && !inClass) return at + 1;
  }
  return start + 1;
}
