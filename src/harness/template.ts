import { type Expression, ExpressionError, evaluate, parseExpression, type Scope } from "./expression.js";

/** A text, cut at its templates. */
export type TemplatePart = string | { readonly source: string; readonly expression: Expression };

const OPEN = "{{";
const CLOSE = "}}";

/** Cuts a text at every `{{ expression }}`. */
export function parseTemplate(text: string): TemplatePart[] {
  const parts: TemplatePart[] = [];
  let at = 0;
  for (;;) {
    const open = text.indexOf(OPEN, at);
    if (open === -1) break;
    const close = endOf(text, open + OPEN.length);
    if (close === -1) throw new ExpressionError(`"${excerpt(text.slice(open))}" is not closed by "${CLOSE}"`);
    const source = text.slice(open + OPEN.length, close).trim();
    if (source === "") throw new ExpressionError(`"${OPEN}${CLOSE}" names nothing`);
    parts.push(text.slice(at, open), { source, expression: parseExpression(source) });
    at = close + CLOSE.length;
  }
  parts.push(text.slice(at));
  return parts.filter((part) => part !== "");
}

/** The end of a template; one within quotes does not count. */
function endOf(text: string, from: number): number {
  let quote = "";
  for (let at = from; at < text.length; at += 1) {
    const letter = text[at] ?? "";
    if (quote !== "") {
      if (letter === "\\") at += 1;
      else if (letter === quote) quote = "";
    } else if (letter === "'" || letter === '"') quote = letter;
    else if (text.startsWith(CLOSE, at)) return at;
  }
  return -1;
}

/** Whether a text has templates. */
export function hasTemplate(text: string): boolean {
  return text.includes(OPEN);
}

/** Fills in the templates of a text. A name without a value is an error: it is never an empty text by accident. */
export async function renderTemplate(text: string, scope: Scope): Promise<string> {
  if (!hasTemplate(text)) return text;
  let rendered = "";
  for (const part of parseTemplate(text)) {
    if (typeof part === "string") rendered += part;
    else {
      const value = await evaluate(part.expression, scope);
      if (value === null) throw new ExpressionError(`{{ ${part.source} }} has no value in this run`);
      rendered += String(value);
    }
  }
  return rendered;
}

function excerpt(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
