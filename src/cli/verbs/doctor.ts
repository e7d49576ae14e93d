import { lastConformance } from "../../sandbox/host.js";
import {
  backendNames,
  capabilitiesOf,
  chooseBackend,
  credentialsOf,
  type Finding,
  probeBackend,
} from "../../sandbox.js";
import { toInertLine } from "../../util/inert-text.js";
import { UsageError } from "../commands.js";
import type { Invocation } from "../invocation.js";
import { formatTable, type Style } from "../terminal.js";
import { type BackendRow, COLUMNS, toBackendRow } from "./doctor/backend-row.js";
import { runConformanceKit } from "./doctor/conformance.js";
import { credentialFindings, GITHUB } from "./doctor/credentials.js";
import { machineFindings } from "./doctor/machine.js";
import type { Section } from "./doctor/section.js";

/** `glovebox doctor`. */
export async function run(invocation: Invocation): Promise<number> {
  const { flags, screen } = invocation;
  const backend = flags.text("conformance");
  if (backend !== undefined) return await runConformanceKit(backend, invocation);
  if (flags.has("only")) throw new UsageError("--only needs --conformance", "glovebox doctor --conformance local");
  const chosen = chooseBackend(process.env);
  const { sections, backends } = await screen.during("looking at this machine", () => examine(chosen));
  const works = sections.some(({ name, findings }) => name === chosen && !isBroken(findings));
  if (flags.has("json")) await screen.printJson({ default: chosen, works, backends, sections });
  else await screen.print(report(sections, backends, chosen, works, screen.style));
  return works ? 0 : 1;
}

async function examine(chosen: string): Promise<{ sections: Section[]; backends: BackendRow[] }> {
  const names = backendNames();
  const backends: BackendRow[] = [];
  const sections: Section[] = [{ name: "machine", findings: await machineFindings() }];
  for (const name of names.includes(chosen) ? names : [...names, chosen]) {
    const isUnknown = (each: Finding): boolean => name === chosen && each.name === "backend" && each.fix === undefined;
    const fix = "unset GLOVEBOX_BACKEND";
    const findings = (await probeBackend(name)).map((each) => (isUnknown(each) ? { ...each, fix } : each));
    if (!findings.some((each) => each.name === "credentials"))
      findings.push(...credentialFindings(await credentialsOf(name), process.env));
    sections.push({ name, findings });
    backends.push(toBackendRow(name, findings, await capabilitiesOf(name), await lastConformance(name)));
  }
  sections.push({ name: "github", findings: credentialFindings(GITHUB, process.env) });
  return { sections, backends };
}

/** One line for each backend, with the fixes below it. */
function overview(backends: readonly BackendRow[], bold: Style["bold"], dim: Style["dim"]): string {
  const rows = backends.flatMap((row) => [
    [row.backend, ...COLUMNS.map((column) => row[column])].map(toInertLine),
    ...row.fixes.map(({ of, fix }) => ["", dim(`fix ${of.join(", ")}: ${toInertLine(fix)}`)]),
  ]);
  return formatTable([["backend", ...COLUMNS].map((column) => bold(column)), ...rows]);
}

function isBroken(findings: Section["findings"]): boolean {
  return findings.some(({ status }) => status === "missing");
}

function report(
  sections: readonly Section[],
  backends: readonly BackendRow[],
  chosen: string,
  works: boolean,
  style: Style,
): string {
  const { good, bad, warn, dim, bold } = style;
  const marks = { ok: good("ok"), limited: warn("limited"), missing: bad("missing"), unused: dim("unused") };
  const blocks = sections.map(({ name, findings }) => {
    const rows = findings.flatMap((finding) => {
      const row = [`  ${marks[finding.status]}`, finding.name, toInertLine(finding.detail)];
      return finding.fix === undefined ? [row] : [row, ["", "", dim(`fix: ${toInertLine(finding.fix)}`)]];
    });
    return `${bold(toInertLine(name === chosen ? `${name} (default)` : name))}\n${formatTable(rows)}`;
  });
  const verdict = works
    ? good(`The default backend, ${toInertLine(chosen)}, works.`)
    : bad(`The default backend, ${toInertLine(chosen)}, does not work.`);
  return `${blocks.join("\n")}\n${overview(backends, bold, dim)}\n${verdict}\n`;
}
