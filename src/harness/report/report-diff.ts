import { html, type Markup } from "./html.js";

const MOST_LINES = 20_000;

/** A patch as markup: a fold for each file, added and removed lines in their colours. */
export function diffMarkup(patch: string): Markup {
  const lines = patch.split("\n");
  const isCut = lines.length > MOST_LINES;
  const files: string[][] = [];
  for (const line of isCut ? lines.slice(0, MOST_LINES) : lines) {
    if (line.startsWith("diff --git ") || files.length === 0) files.push([]);
    files.at(-1)?.push(line);
  }
  const rest = lines.length - MOST_LINES;
  const note = isCut ? html`<p class="dim">${rest} more lines are in changes.patch.</p>` : undefined;
  return html`${files.filter((file) => file.some((line) => line !== "")).map(fileMarkup)}${note}`;
}

function fileMarkup(lines: readonly string[]): Markup {
  const [, from, to] = /^diff --git a\/(.*) b\/(.*)$/.exec(lines[0] ?? "") ?? [];
  const name = from === to ? (from ?? lines[0] ?? "") : `${from} → ${to}`;
  const count = (sign: string): number =>
    lines.filter((line) => line.startsWith(sign) && !line.startsWith(sign.repeat(3))).length;
  return html`<details class="node file" open><summary><code>${name}</code><span class="grow"></span><span class="good">+${count("+")}</span><span class="bad">−${count("-")}</span></summary><div><pre class="diff">${lines.slice(1).map(rowMarkup)}</pre></div></details>`;
}

function rowMarkup(line: string): Markup {
  const kind = /^(?:\+\+\+|---|index |new file|deleted file|similarity|rename)/.test(line)
    ? "dim"
    : line.startsWith("@@")
      ? "hunk"
      : line.startsWith("+")
        ? "added"
        : line.startsWith("-")
          ? "removed"
          : "";
  return html`<span class="row ${kind}">${line}</span>`;
}
