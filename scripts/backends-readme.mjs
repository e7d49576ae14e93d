import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { backendNames } from "../dist/src/sandbox.js";
import { markdownTable, writeSection } from "./generated-section.mjs";
import { root } from "./prepare.mjs";

/**
 * Writes the tables of backends into the README and `docs/backends.md`, from the capabilities and results that the last run
 * of the conformance kit recorded (`npm run conformance -- --all --write`): `backends-readme.mjs [--check]`.
 */
const COLUMNS = {
  Backend: ({ name }) => `\`${name}\``,
  Isolation: ({ capabilities }) => capabilities?.isolation ?? "unknown",
  Network: ({ capabilities }) => list(capabilities?.network),
  Limits: ({ capabilities }) => list(capabilities?.limits),
  Snapshots: ({ capabilities }) => capabilities?.snapshot ?? "",
  Forks: ({ capabilities }) => capabilities?.fork ?? "",
  Terminals: ({ capabilities }) => yesNo(capabilities?.pty),
  Users: ({ capabilities }) => yesNo(capabilities?.user),
  Ports: ({ capabilities }) => yesNo(capabilities?.ports),
  Git: ({ capabilities }) => yesNo(capabilities?.git),
  "Conformance kit": ({ counts }) => sumUp(counts),
  "Tested on": ({ on }) => (on === "this machine" ? "the real backend" : on),
};
const IN_README = ["Backend", "Isolation", "Network", "Limits", "Tested on"];

const results = backendNames().map(readResult);
writeTable("README.md", IN_README);
writeTable("docs/backends.md", Object.keys(COLUMNS));

function writeTable(document, columns) {
  const rows = results.map((result) => columns.map((column) => cellOf(result, column)));
  writeSection(document, "backends", markdownTable([columns, ...rows]), "npm run backends:readme");
}

function cellOf(result, column) {
  return result.counts || column === "Backend" ? COLUMNS[column](result) : "not run";
}

function readResult(name) {
  const file = join(root, "conformance", `${name}.json`);
  return { name, ...(existsSync(file) && JSON.parse(readFileSync(file, "utf8"))) };
}

function list(words) {
  return words?.join(", ") || "none";
}

function yesNo(flag) {
  return flag ? "yes" : "no";
}

function sumUp({ passed = 0, failed = 0, refused = 0, "not run": notRun = 0 }) {
  const parts = [`${passed} passed`, failed > 0 && `${failed} failed`, refused > 0 && `${refused} refused`];
  return [...parts, notRun > 0 && `${notRun} not run`].filter(Boolean).join(", ");
}
