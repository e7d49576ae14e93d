/** What a line of TOML is about: the table that it starts, the key that it sets, or the value that it goes on with. */
export type TomlLine =
  | { readonly is: "table" | "key"; readonly keys: readonly string[] }
  | { readonly is: "more" }
  /** Nothing, or a comment. */
  | { readonly is: "blank" };

/** Tells for each line of TOML what it is about. */
export function readTomlLines(lines: readonly string[]): TomlLine[] {
  const open: Open = { quote: undefined, depth: 0 };
  return lines.map((line): TomlLine => {
    const isMore = open.quote !== undefined || open.depth > 0;
    const header = isMore
      ? undefined
      : /^\s*\[{1,2}((?:[^[\]"'#]|"[^"]*"|'[^']*')+)\]{1,2}\s*(?:#.*)?$/.exec(line)?.[1];
    if (header !== undefined) return { is: "table", keys: keysOf(header) };
    follow(line, open);
    if (isMore) return { is: "more" };
    const key = /^\s*((?:[^=#"']|"[^"]*"|'[^']*')+)=/.exec(line)?.[1];
    return key === undefined ? { is: "blank" } : { is: "key", keys: keysOf(key) };
  });
}

/** What a value leaves open at the end of a line. */
interface Open {
  quote: string | undefined;
  /** Brackets. */
  depth: number;
}

/** Follows the strings and brackets of a line. */
function follow(line: string, open: Open): void {
  for (let at = 0; at < line.length; at += 1) {
    const mark = /^(?:"""|'''|["'])/.exec(line.slice(at, at + 3))?.[0];
    const char = line[at];
    if (open.quote !== undefined) {
      if (char === "\\" && open.quote.startsWith('"')) at += 1;
      else if (line.startsWith(open.quote, at)) {
        at += open.quote.length - 1;
        open.quote = undefined;
      }
    } else if (mark !== undefined) {
      open.quote = mark;
      at += mark.length - 1;
    } else if (char === "#") break;
    else if (char === "[" || char === "{") open.depth += 1;
    else if (char === "]" || char === "}") open.depth = Math.max(0, open.depth - 1);
  }
  // Only the long ones go over lines.
  if (open.quote?.length === 1) open.quote = undefined;
}

function keysOf(text: string): string[] {
  return [...text.matchAll(/\s*(?:"([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*\.?/g)].map(
    ([, a, b, c]) => a ?? b ?? c ?? "",
  );
}
