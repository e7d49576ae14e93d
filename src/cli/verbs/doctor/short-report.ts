import type { Finding } from "../../../sandbox.js";
import { toInertLine } from "../../../util/inert-text.js";
import { columnsOf, formatTable, type Output, type Style } from "../../terminal.js";
import type { BackendRow } from "./backend-row.js";
import { verdictOn } from "./full-report.js";
import { type Examination, isBroken, type Section } from "./section.js";

const STATE_WIDTH = 9;

/** A screenful: one line for each backend, in full only what stops the default one. */
export function shortReport(examination: Examination, style: Style, output: Output): string {
  const { sections, backends, chosen, subject, works } = examination;
  const { bold, dim } = style;
  const names = backends.map(({ backend }) => toInertLine(backend));
  const width = Math.max("machine".length, ...names.map((name) => name.length));
  // A file or a pipe gets whole lines.
  const room = output.isTTY === true ? columnsOf(output) - width - STATE_WIDTH - 7 : Number.POSITIVE_INFINITY;
  const rows = sections.map((section) => {
    const row = backends.find(({ backend }) => backend === section.name);
    const [state, summary] = row === undefined ? describeOther(section, style) : describeBackend(section, row, style);
    return [`  ${bold(toInertLine(section.name))}`, state, cut(toInertLine(summary), room)];
  });
  const stopped = sections.filter(
    ({ name, findings }) => (name === chosen || name === "machine") && isBroken(findings),
  );
  const problems = stopped.flatMap(({ name, findings }) => [
    bold(`What stops ${toInertLine(name)}`),
    ...findings.filter(({ status }) => status === "missing").flatMap((finding) => problemOf(finding, style)),
    "",
  ]);
  return [
    formatTable(rows),
    ...problems,
    verdictOn(subject, works, false, style),
    dim("glovebox doctor <backend> shows one in full, glovebox doctor --all everything."),
    "",
  ].join("\n");
}

function describeBackend({ findings }: Section, row: BackendRow, { good, bad }: Style): [string, string] {
  const missing = findings.find(({ status }) => status === "missing");
  if (missing !== undefined) return [bad("not ready"), missing.fix ?? missing.detail];
  const limited = findings.filter(({ status }) => status === "limited").map(({ name }) => name);
  const limits = row.limits === "none" ? "no limits" : `limits: ${row.limits}`;
  const parts = [row.isolation, limits, ...(limited.length === 0 ? [] : [`limited: ${limited.join(", ")}`])];
  return [good("works"), parts.join("; ")];
}

/** The machine, the token of GitHub, or the agents, of which one is enough. */
function describeOther({ findings }: Section, { good, bad, warn, dim }: Style): [string, string] {
  const usable = findings.filter(({ status }) => status === "ok");
  const states = usable.length > 0 ? ["missing", "limited"] : ["missing", "limited", "unused"];
  const worst = states.map((status) => findings.find((each) => each.status === status));
  const found = worst.find((each) => each !== undefined);
  if (found === undefined) return [good("ok"), usable.map(({ name, detail }) => `${name} ${detail}`).join(", ")];
  const paint = found.status === "missing" ? bad : found.status === "limited" ? warn : dim;
  const which = found.status === "unused" && findings.length > 1 ? `${found.name} ` : "";
  return [paint(found.status), `${which}${found.detail}${found.fix === undefined ? "" : `: ${found.fix}`}`];
}

function problemOf({ name, detail, fix }: Finding, { bad, dim }: Style): string[] {
  const line = `  ${bad(name)}: ${toInertLine(detail)}`;
  return fix === undefined ? [line] : [line, dim(`    fix: ${toInertLine(fix)}`)];
}

function cut(text: string, room: number): string {
  const characters = [...text];
  return characters.length <= room ? text : `${characters.slice(0, Math.max(0, room - 1)).join("")}…`;
}
