import { toInert } from "../../util/inert-text.js";

/** Markup that is known to be safe; only `html` makes it. */
export interface Markup {
  readonly markup: string;
}

type Part = Markup | string | number | undefined | readonly Part[];

/** Puts markup together; every text that is filled in is shown as it is, whatever is in it. */
export function html(pieces: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  let markup = pieces[0] ?? "";
  for (const [index, part] of parts.entries()) markup += toMarkup(part) + (pieces[index + 1] ?? "");
  return { markup };
}

function toMarkup(part: Part): string {
  if (part === undefined) return "";
  if (typeof part === "string") return escapeText(part);
  if (typeof part === "number") return String(part);
  return "markup" in part ? part.markup : part.map(toMarkup).join("");
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
  "`": "&#96;",
};

function escapeText(text: string): string {
  return toInert(text).replace(/[&<>"'`]/g, (character) => ENTITIES[character] ?? "");
}
