/** What a module says about the code that it loads. */
export interface ScannedImports {
  /** As written, each once. */
  readonly specifiers: readonly string[];
  /** Files beside it that it names by `new URL("…", import.meta.url)`. */
  readonly assets: readonly string[];
  /** Lines of code that choose what to load while they run, which no hash can cover. */
  readonly computed: readonly number[];
}

interface Token {
  readonly kind: "word" | "text" | "sign";
  /** Of a text: what is between its quotes, where that is plain; else undefined. */
  readonly value: string | undefined;
  readonly line: number;
}

/** Words after which a slash starts a regular expression. */
const BEFORE_PATTERN = /^(?:return|typeof|case|in|of|delete|void|throw|new|else|do|await|yield)$/;

/**
 * Finds what a module imports. It reads words and texts, no grammar: too much that is found does no harm, and what is
 * missed cannot be loaded later, because only what was found is put beside the module that runs.
 */
export function scanImports(source: string): ScannedImports {
  const tokens = tokenize(source);
  const specifiers = new Set<string>();
  const assets = new Set<string>();
  const computed: number[] = [];
  for (const [at, token] of tokens.entries()) {
    const isMember = isSign(tokens[at - 1], ".") && !(token.value === "require" && tokens[at - 2]?.value === "module");
    if (token.kind !== "word" || isMember) continue;
    const next = tokens[at + 1];
    if (token.value === "createRequire") computed.push(token.line);
    if ((token.value === "from" || token.value === "import") && next?.kind === "text") {
      if (next.value === undefined) computed.push(token.line);
      else specifiers.add(next.value);
    }
    if ((token.value === "import" || token.value === "require") && isSign(next, "(")) {
      const [name, after] = [tokens[at + 2], tokens[at + 3]];
      const isPlain = name?.kind === "text" && name.value !== undefined && (isSign(after, ")") || isSign(after, ","));
      if (isPlain) add(specifiers, name.value);
      else computed.push(token.line);
    }
    if (token.value === "URL" && isSign(next, "(") && isOwnUrl(tokens, at + 3)) add(assets, tokens[at + 2]?.value);
  }
  return { specifiers: [...specifiers], assets: [...assets], computed };
}

function add(set: Set<string>, value: string | undefined): void {
  if (value !== undefined) set.add(value);
}

function isSign(token: Token | undefined, sign: string): boolean {
  return token?.kind === "sign" && token.value === sign;
}

/** Whether `, import.meta.url` stands here. */
function isOwnUrl(tokens: readonly Token[], at: number): boolean {
  return [",", "import", ".", "meta", ".", "url"].every((value, offset) => tokens[at + offset]?.value === value);
}

function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  /** Open braces inside each template that is interrupted by `${`. */
  const templates: number[] = [];
  let line = 1;
  let at = 0;
  const take = (end: number): string => {
    const text = source.slice(at, end);
    line += text.split("\n").length - 1;
    at = end;
    return text;
  };
  const push = (kind: Token["kind"], value: string | undefined, onLine: number): void => {
    tokens.push({ kind, value, line: onLine });
  };
  const template = (): void => {
    const start = line;
    const end = templateEnd(source, at + 1);
    const isStart = source[at] === "`";
    const text = take(end);
    const isOpen = text.endsWith("${");
    push("text", isStart && !isOpen ? plain(text.slice(1, -1)) : undefined, start);
    if (isOpen) templates.push(0);
  };
  while (at < source.length) {
    const [char = "", two] = [source[at], source.slice(at, at + 2)];
    if (two === "//" || (at === 0 && two === "#!")) take(endOr(source.indexOf("\n", at), source));
    else if (two === "/*") take(endOr(source.indexOf("*/", at + 2), source, 2));
    else if (/\s/.test(char)) take(at + 1);
    else if (char === '"' || char === "'") {
      const start = line;
      push("text", plain(take(quotedEnd(source, at, char)).slice(1, -1)), start);
    } else if (char === "`") template();
    else if (char === "}" && templates.at(-1) === 0) {
      templates.pop();
      template();
    } else if (char === "/" && startsPattern(tokens.at(-1))) take(patternEnd(source, at));
    else if (/[\p{ID_Start}$_\\#@\d]/u.test(char)) {
      const start = line;
      push("word", take(wordEnd(source, at)), start);
    } else {
      const depth = templates.pop();
      if (depth !== undefined) templates.push(depth + (char === "{" ? 1 : char === "}" ? -1 : 0));
      push("sign", char, line);
      take(at + 1);
    }
  }
  return tokens;
}

/** A text without escapes; one with escapes is not a name that could be looked up. */
function plain(text: string): string | undefined {
  return text.includes("\\") ? undefined : text;
}

function wordEnd(source: string, start: number): number {
  let at = start + 1;
  while (at < source.length && /[\p{ID_Continue}$\\]/u.test(source[at] ?? "")) at += 1;
  return at;
}

function endOr(index: number, source: string, length = 0): number {
  return index === -1 ? source.length : index + length;
}

function quotedEnd(source: string, start: number, quote: string): number {
  for (let at = start + 1; at < source.length; at += 1) {
    if (source[at] === "\\") at += 1;
    else if (source[at] === quote || source[at] === "\n") return at + 1;
  }
  return source.length;
}

/** Behind the end of a template, or behind the `${` that interrupts it. */
function templateEnd(source: string, start: number): number {
  for (let at = start; at < source.length; at += 1) {
    if (source[at] === "\\") at += 1;
    else if (source[at] === "`") return at + 1;
    else if (source.startsWith("${", at)) return at + 2;
  }
  return source.length;
}

function startsPattern(before: Token | undefined): boolean {
  if (before === undefined) return true;
  if (before.kind === "sign") return !/[)\]}]/.test(before.value ?? "");
  return before.kind === "word" && BEFORE_PATTERN.test(before.value ?? "");
}

function patternEnd(source: string, start: number): number {
  let inClass = false;
  for (let at = start + 1; at < source.length; at += 1) {
    const char = source[at];
    if (char === "\\") at += 1;
    else if (char === "\n") return start + 1;
    else if (char === "[") inClass = true;
    else if (char === "]") inClass = false;
    else if (char === "/" && !inClass) return at + 1;
  }
  return start + 1;
}
