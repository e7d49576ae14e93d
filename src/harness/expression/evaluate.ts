import type { Expression, Sign, Value } from "./parse.js";
import { ExpressionError } from "./tokens.js";

/** Where the names of an expression get their values. */
export interface Scope {
  /** Undefined when there is nothing of this name. */
  lookUp(path: readonly string[]): Value | undefined;
  /** Whether a file that differs from the start matches one of the globs; without globs: any file. */
  changed(globs: readonly string[]): Promise<boolean>;
}

/** How many arguments each function takes. */
export const FUNCTIONS: Readonly<Record<string, readonly [least: number, most: number]>> = {
  changed: [0, 16],
  contains: [2, 2],
  startsWith: [2, 2],
  endsWith: [2, 2],
};

/** Evaluates an expression. */
export async function evaluate(expression: Expression, scope: Scope): Promise<Value> {
  switch (expression.kind) {
    case "value":
      return expression.value;
    case "name":
      return scope.lookUp(expression.path) ?? null;
    case "not":
      return !isTrue(await evaluate(expression.of, scope));
    case "call":
      return await call(expression.name, await evaluateAll(expression.args, scope), scope);
    case "pair":
      return await combine(expression, scope);
  }
}

/** Whether a value counts as true: all but `false`, `null`, `0` and the empty text. */
export function isTrue(value: Value): boolean {
  return value !== null && value !== false && value !== 0 && value !== "";
}

async function evaluateAll(expressions: readonly Expression[], scope: Scope): Promise<Value[]> {
  const values: Value[] = [];
  for (const expression of expressions) values.push(await evaluate(expression, scope));
  return values;
}

async function combine({ sign, left, right }: Extract<Expression, { kind: "pair" }>, scope: Scope): Promise<Value> {
  const first = await evaluate(left, scope);
  if (sign === "&&") return isTrue(first) ? await evaluate(right, scope) : first;
  if (sign === "||") return isTrue(first) ? first : await evaluate(right, scope);
  const second = await evaluate(right, scope);
  if (sign === "==") return first === second;
  if (sign === "!=") return first !== second;
  return compare(sign, first, second);
}

function compare(sign: Sign, first: Value, second: Value): boolean {
  if (typeof first !== "number" || typeof second !== "number") {
    throw new ExpressionError(`"${sign}" compares numbers, not ${JSON.stringify(first)} and ${JSON.stringify(second)}`);
  }
  if (sign === "<") return first < second;
  if (sign === "<=") return first <= second;
  return sign === ">" ? first > second : first >= second;
}

async function call(name: string, args: readonly Value[], scope: Scope): Promise<Value> {
  const [text = "", part = ""] = args.map((value) => (value === null ? "" : String(value)));
  if (name === "changed") return await scope.changed(args.map(String));
  if (name === "contains") return text.includes(part);
  if (name === "startsWith") return text.startsWith(part);
  if (name === "endsWith") return text.endsWith(part);
  throw new ExpressionError(`there is no function ${name}`);
}
