import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { backendNames } from "../dist/src/sandbox.js";
import { root } from "./prepare.mjs";

/**
 * Writes the README's table of backends from the capabilities and results that the last run of the conformance kit recorded
 * (`npm run conformance -- --all --write`): `backends-readme.mjs [--check]`.
 */
const readme = join(root, "README.md");
const [begin, end] = ["<!-- backends: begin -->", "<!-- backends: end -->"];
const HEAD = [
  "Backend",
  "Isolation",
  "Network",
  "Limits",
  "Snapshot",
  "Fork",
  "Terminal",
  "User",
  "Ports",
  "Git",
  "Kit",
];

const text = readFileSync(readme, "utf8");
const [before, after] = [text.indexOf(begin), text.indexOf(end)];
if (before < 0 || after < before) throw new Error(`README.md has no ${begin} … ${end}`);
const rows = backendNames().map(rowOf);
const wanted = `${text.slice(0, before)}${begin}\n\n${table([HEAD, ...rows])}\n\n${text.slice(after)}`;
if (!process.argv.includes("--check")) writeFileSync(readme, wanted);
else if (wanted !== text) {
  console.error("the table of backends in README.md is out of date: run npm run backends:readme");
  process.exitCode = 1;
}

/** A backend without a result gets an empty row. */
function rowOf(name) {
  const file = join(root, "conformance", `${name}.json`);
  if (!existsSync(file)) return [`\`${name}\``, "not run", ...HEAD.slice(2).map(() => "")];
  const { on, counts, capabilities: kept } = JSON.parse(readFileSync(file, "utf8"));
  const list = (words) => words?.join(", ") || "none";
  const flags = [kept?.pty, kept?.user, kept?.ports, kept?.git].map((flag) => (flag ? "yes" : "no"));
  const cells = [
    kept?.isolation ?? "unknown",
    list(kept?.network),
    list(kept?.limits),
    kept?.snapshot ?? "",
    kept?.fork ?? "",
  ];
  return [`\`${name}\``, ...cells, ...flags, `${sumUp(counts)}, on ${on}`];
}

function sumUp({ passed = 0, failed = 0, refused = 0, "not run": notRun = 0 }) {
  const parts = [`${passed} passed`, failed > 0 && `${failed} failed`, refused > 0 && `${refused} refused`];
  return [...parts, notRun > 0 && `${notRun} not run`].filter(Boolean).join(", ");
}

function table(lines) {
  const widths = HEAD.map((_, column) => Math.max(3, ...lines.map((line) => line[column].length)));
  const row = (cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(" | ")} |`;
  const [head, ...rest] = lines.map(row);
  return [head, row(widths.map((width) => "-".repeat(width))), ...rest].join("\n");
}
