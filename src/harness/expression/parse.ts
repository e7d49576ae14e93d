import { ExpressionError, type Token, tokenize } from "./tokens.js";

/** The value of an expression. */
export type Value = string | number | boolean | null;

/** An expression that was read. */
export type Expression =
  | { readonly kind: "value"; readonly value: Value }
  | { readonly kind: "name"; readonly path: readonly string[] }
  | { readonly kind: "call"; readonly name: string; readonly args: readonly Expression[] }
  | { readonly kind: "not"; readonly of: Expression }
  | { readonly kind: "pair"; readonly sign: Sign; readonly left: Expression; readonly right: Expression };

export type Sign = "==" | "!=" | "<" | "<=" | ">" | ">=" | "&&" | "||";

/** Signs by how tightly they bind, the loosest first. */
const LEVELS: readonly (readonly Sign[])[] = [["||"], ["&&"], ["==", "!="], ["<", "<=", ">", ">="]];
const WORDS: Readonly<Record<string, Value>> = { true: true, false: false, null: null };
const MAX_LENGTH = 4_000;
const MAX_DEPTH = 64;

/** Reads an expression. It is data: nothing of it is ever run as code. */
export function parseExpression(text: string): Expression {
  if (text.length > MAX_LENGTH) throw new ExpressionError(`an expression has at most ${MAX_LENGTH} characters`);
  const parser = new Parser(tokenize(text));
  const expression = parser.level(0);
  parser.expectEnd();
  return expression;
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  level(rank: number): Expression {
    const signs = LEVELS[rank];
    if (signs === undefined) return this.#unary();
    let left = this.level(rank + 1);
    for (;;) {
      const sign = signs.find((candidate) => this.#take(candidate));
      if (sign === undefined) return left;
      left = { kind: "pair", sign, left, right: this.level(rank + 1) };
    }
  }

  expectEnd(): void {
    if (this.#next.kind !== "end") throw this.#unexpected("the end, or && or ||");
  }

  #unary(): Expression {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new ExpressionError(`an expression is at most ${MAX_DEPTH} deep`);
    const found = this.#take("!") ? ({ kind: "not", of: this.#unary() } as const) : this.#primary();
    this.#depth -= 1;
    return found;
  }

  #primary(): Expression {
    const token = this.#next;
    if (this.#take("(")) {
      const inner = this.level(0);
      this.#expect(")");
      return inner;
    }
    if (token.kind === "end" || token.kind === "sign") throw this.#unexpected("a name or a value");
    this.#at += 1;
    if (token.kind === "string") return { kind: "value", value: unquote(token.text) };
    if (token.kind === "number") return { kind: "value", value: Number(token.text) };
    const word = Object.hasOwn(WORDS, token.text) ? WORDS[token.text] : undefined;
    if (word !== undefined) return { kind: "value", value: word };
    return this.#take("(") ? this.#call(token.text) : this.#path(token.text);
  }

  #call(name: string): Expression {
    const args: Expression[] = [];
    if (this.#take(")")) return { kind: "call", name, args };
    do args.push(this.level(0));
    while (this.#take(","));
    this.#expect(")");
    return { kind: "call", name, args };
  }

  #path(first: string): Expression {
    const path = [first];
    for (;;) {
      if (this.#take(".")) path.push(this.#word("name"));
      else if (this.#take("[")) {
        path.push(unquote(this.#word("string")));
        this.#expect("]");
      } else return { kind: "name", path };
    }
  }

  #word(kind: "name" | "string"): string {
    const token = this.#next;
    if (token.kind !== kind) throw this.#unexpected(kind === "name" ? "a name" : "a name in quotes");
    this.#at += 1;
    return token.text;
  }

  #take(sign: string): boolean {
    const isThere = this.#next.kind === "sign" && this.#next.text === sign;
    if (isThere) this.#at += 1;
    return isThere;
  }

  #expect(sign: string): void {
    if (!this.#take(sign)) throw this.#unexpected(`"${sign}"`);
  }

  get #next(): Token {
    return this.#tokens[this.#at] ?? { kind: "end", text: "", at: 0 };
  }

  #unexpected(wanted: string): ExpressionError {
    const { kind, text, at } = this.#next;
    const found = kind === "end" ? "it ends" : `"${text}" stands`;
    return new ExpressionError(`${wanted} was expected at ${at + 1}, where ${found}`);
  }
}

function unquote(text: string): string {
  return text.slice(1, -1).replace(/\\(.)/gs, "$1");
}
