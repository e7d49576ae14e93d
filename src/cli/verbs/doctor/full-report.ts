import { toInertLine } from "../../../util/inert-text.js";
import { formatTable, type Style } from "../../terminal.js";
import { type BackendRow, COLUMNS } from "./backend-row.js";
import type { Examination } from "./section.js";

/** Everything that was found: every finding, and one line for each backend with the fixes below it. */
export function fullReport(examination: Examination, style: Style): string {
  const { sections, backends, chosen, subject, works } = examination;
  const { good, bad, warn, dim, bold } = style;
  const marks = { ok: good("ok"), limited: warn("limited"), missing: bad("missing"), unused: dim("unused") };
  const blocks = sections.map(({ name, findings }) => {
    const rows = findings.flatMap((finding) => {
      const row = [`  ${marks[finding.status]}`, finding.name, toInertLine(finding.detail)];
      return finding.fix === undefined ? [row] : [row, ["", "", dim(`fix: ${toInertLine(finding.fix)}`)]];
    });
    const manifests = findings.flatMap(({ manifest }) => (manifest === undefined ? [] : [manifestOf(manifest, style)]));
    const title = bold(toInertLine(name === chosen ? `${name} (default)` : name));
    return [`${title}\n${formatTable(rows)}`, ...manifests].join("\n");
  });
  const [only] = backends;
  const isOne = only !== undefined && sections.length === 2;
  const table = isOne ? capabilitiesOf(only, style) : overview(backends, style);
  return `${blocks.join("\n")}\n${table}\n${verdictOn(subject, works, isOne && subject !== chosen, style)}\n`;
}

/** A file, to be copied as it is. */
function manifestOf(text: string, { dim }: Style): string {
  const lines = text.trimEnd().split("\n").map(toInertLine);
  return [dim("# manifest"), ...lines, ""].join("\n");
}

/** The last line: whether the backend works. */
export function verdictOn(name: string, works: boolean, isOther: boolean, { good, bad }: Style): string {
  const subject = isOther ? `The backend ${toInertLine(name)}` : `The default backend, ${toInertLine(name)},`;
  return works ? good(`${subject} works.`) : bad(`${subject} does not work.`);
}

/** What a backend can do, one row each, with the fixes. */
function capabilitiesOf(row: BackendRow, { dim }: Style): string {
  const rows = COLUMNS.flatMap((column) => [
    [`  ${column}`, toInertLine(row[column])],
    ...row.fixes.flatMap(({ of, fix }) => (of[0] === column ? [["", dim(`fix: ${toInertLine(fix)}`)]] : [])),
  ]);
  return formatTable(rows);
}

/** One line for each backend, with the fixes below it. */
function overview(backends: readonly BackendRow[], { bold, dim }: Style): string {
  const rows = backends.flatMap((row) => [
    [row.backend, ...COLUMNS.map((column) => row[column])].map(toInertLine),
    ...row.fixes.map(({ of, fix }) => ["", dim(`fix ${of.join(", ")}: ${toInertLine(fix)}`)]),
  ]);
  return formatTable([["backend", ...COLUMNS].map((column) => bold(column)), ...rows]);
}
