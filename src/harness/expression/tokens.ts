/** A piece of an expression. */
export interface Token {
  readonly kind: "name" | "string" | "number" | "sign" | "end";
  readonly text: string;
  /** Where it starts, from 0. */
  readonly at: number;
}

/** An expression that cannot be read. */
export class ExpressionError extends Error {
  override readonly name = "ExpressionError";
}

const PIECES: readonly (readonly [Token["kind"] | "space", RegExp])[] = [
  ["space", /\s+/y],
  ["name", /[A-Za-z_][A-Za-z0-9_-]*/y],
  ["number", /\d+(?:\.\d+)?/y],
  ["string", /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/sy],
  ["sign", /==|!=|<=|>=|&&|\|\||[<>!().,[\]]/y],
];

/** Cuts an expression into its pieces. */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const found = pieceAt(text, at);
    if (found === undefined) {
      throw new ExpressionError(`"${text[at]}" at ${at + 1} means nothing in an expression`);
    }
    if (found.kind !== "space") tokens.push({ kind: found.kind, text: found.text, at });
    at += found.text.length;
  }
  return [...tokens, { kind: "end", text: "", at }];
}

function pieceAt(text: string, at: number): { kind: Token["kind"] | "space"; text: string } | undefined {
  for (const [kind, pattern] of PIECES) {
    pattern.lastIndex = at;
    const [piece] = pattern.exec(text) ?? [];
    if (piece !== undefined) return { kind, text: piece };
  }
  return undefined;
}
