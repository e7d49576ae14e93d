import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./prepare.mjs";

/** Writes `text` between the marks of a document. With `--check` it fails instead if the document has something else there. */
export function writeSection(document, name, text, command) {
  const file = join(root, document);
  const old = readFileSync(file, "utf8");
  const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
  const [before, after] = [old.indexOf(begin), old.indexOf(end)];
  if (before < 0 || after < before) throw new Error(`${document} has no ${begin} … ${end}`);
  const wanted = `${old.slice(0, before)}${begin}\n\n${text}\n\n${old.slice(after)}`;
  if (wanted === old) return;
  if (!process.argv.includes("--check")) return writeFileSync(file, wanted);
  console.error(`${document} is out of date: run ${command}`);
  process.exitCode = 1;
}

/** A Markdown table; the first row is its head. */
export function markdownTable(rows) {
  const widths = rows[0].map((_, column) => Math.max(3, ...rows.map((row) => row[column].length)));
  const line = (cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(" | ")} |`;
  const [head, ...rest] = rows.map(line);
  return [head, line(widths.map((width) => "-".repeat(width))), ...rest].join("\n");
}
