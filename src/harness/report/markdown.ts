import { toInert, toInertLine } from "../../util/inert-text.js";

/** A text from anywhere as inline code: nothing in it is markup, a mention or a link. */
export function inlineCode(text: string): string {
  const inert = toInertLine(text);
  const longest = Math.max(0, ...[...inert.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  const padded = /^`|`$|^ .* $/.test(inert) ? ` ${inert} ` : inert;
  // A bar would end the cell of a table, also within code.
  return inert === "" ? "` `" : `${fence}${padded.replaceAll("|", "\\|")}${fence}`;
}

/** A name as it is where nothing in it is markup, a mention or a reference, else as inline code. */
export function plainName(name: string): string {
  return /^(?!.*\bGH-\d)[\p{L}\p{N}._/,;!?'()+ -]+$/iu.test(name) ? name : inlineCode(name);
}

/** A text from anywhere as a block of code, whatever fences are in it; what a terminal would act on is shown escaped. */
export function codeBlock(source: string, language = ""): string {
  const text = toInert(source.replace(/\r\n?|[\u2028\u2029]/g, "\n"));
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text.replace(/\n?$/, "\n")}${fence}\n`;
}

/** A table; the cells are markup already. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |\n`;
  return line(head) + line(head.map(() => "---")) + rows.map(line).join("");
}
