/** One field of a query's chain: `name(args)`. */
export interface Selection {
  name: string;
  args: Record<string, unknown>;
}

const TOKEN = /\s*(?:("(?:[^"\\]|\\.)*")|(\.\.\.)|(-?\d+(?:\.\d+)?)|([A-Za-z_]\w*)|([{}()[\]:,]))/y;

/** Reads what the SDK sends: one anonymous operation with a single chain of fields and literal arguments. */
export function parseQuery(text: string): Selection[] {
  TOKEN.lastIndex = 0;
  const tokens: { kind: "string" | "spread" | "number" | "name" | "sign"; text: string }[] = [];
  while (TOKEN.lastIndex < text.trimEnd().length) {
    const found = TOKEN.exec(text);
    if (found === null) throw new Error("Syntax Error: Unexpected character");
    const kinds = ["string", "spread", "number", "name", "sign"] as const;
    const at = kinds.findIndex((_, index) => found[index + 1] !== undefined);
    tokens.push({ kind: kinds[at] as "string", text: found[at + 1] as string });
  }
  let at = 0;
  const peek = (): string => tokens[at]?.text ?? "the end";
  const take = (wanted?: string): string => {
    const token = tokens[at++];
    if (token === undefined || (wanted !== undefined && token.text !== wanted)) {
      throw new Error(`Syntax Error: Expected ${wanted ?? "more"}, found ${token?.text ?? "the end"}`);
    }
    return token.text;
  };
  const value = (): unknown => {
    const token = tokens[at];
    if (token?.kind === "string") return JSON.parse(take());
    if (token?.kind === "number") return Number(take());
    if (token?.kind === "name") {
      const word = take();
      return word === "true" ? true : word === "false" ? false : word === "null" ? null : word;
    }
    if (take() === "[") {
      const list: unknown[] = [];
      while (peek() !== "]") {
        list.push(value());
        if (peek() === ",") take();
      }
      take("]");
      return list;
    }
    at--;
    return members("{", "}");
  };
  const members = (open: string, close: string): Record<string, unknown> => {
    const all: Record<string, unknown> = {};
    take(open);
    while (peek() !== close) {
      const name = take();
      take(":");
      all[name] = value();
      if (peek() === ",") take();
    }
    take(close);
    return all;
  };
  const chain: Selection[] = [];
  let depth = 0;
  take("{");
  for (depth = 1; depth > 0; ) {
    if (peek() === "}") {
      take("}");
      depth--;
    } else if (peek() === "...") {
      take("...");
      take("on");
      take();
      take("{");
      depth++;
    } else {
      const name = take();
      chain.push({ name, args: peek() === "(" ? members("(", ")") : {} });
      if (peek() === "{") {
        take("{");
        depth++;
      }
    }
  }
  return chain;
}
