import { lastConformance } from "../../sandbox/host.js";
import {
  backendNames,
  capabilitiesOf,
  chooseBackend,
  credentialsOf,
  type Finding,
  type OpenOptions,
  probeBackend,
  withUserConfig,
} from "../../sandbox.js";
import { UsageError } from "../commands.js";
import type { Invocation } from "../invocation.js";
import { agentFindings } from "./doctor/agents.js";
import { type BackendRow, toBackendRow } from "./doctor/backend-row.js";
import { runConformanceKit } from "./doctor/conformance.js";
import { credentialFindings, GITHUB } from "./doctor/credentials.js";
import { fullReport } from "./doctor/full-report.js";
import { machineFindings } from "./doctor/machine.js";
import { isBroken, type Section } from "./doctor/section.js";
import { settingsFindings } from "./doctor/settings.js";
import { shortReport } from "./doctor/short-report.js";

/** `glovebox doctor [backend]`: a screenful about all backends, or everything about one. */
export async function run(invocation: Invocation): Promise<number> {
  const { flags, operands, screen } = invocation;
  const [named] = operands;
  const tested = flags.text("conformance");
  if (tested !== undefined) {
    if (named !== undefined) throw new UsageError(`doctor does not take "${named}" with --conformance`, "remove it");
    return await runConformanceKit(tested, invocation);
  }
  if (flags.has("only")) throw new UsageError("--only needs --conformance", "glovebox doctor --conformance local");
  // What is wrong with the file is one of the findings.
  const usual = await withUserConfig<OpenOptions>({}).catch((): OpenOptions => ({}));
  const chosen = usual.backend ?? chooseBackend(process.env);
  const subject = named ?? chosen;
  const settings = await settingsFindings();
  const { sections, backends } = await screen.during("looking at this machine", () =>
    examine(chosen, named, settings, usual),
  );
  const works = !isBroken(settings) && sections.some(({ name, findings }) => name === subject && !isBroken(findings));
  const result = { chosen, subject, works, sections, backends };
  if (flags.has("json")) await screen.printJson({ default: chosen, works, backends, sections });
  else if (named !== undefined || flags.has("all")) await screen.print(fullReport(result, screen.style));
  else await screen.print(shortReport(result, screen.style, screen.stdout));
  return works ? 0 : 1;
}

async function examine(
  chosen: string,
  named: string | undefined,
  settings: readonly Finding[],
  options: OpenOptions,
): Promise<{ sections: Section[]; backends: BackendRow[] }> {
  const known = backendNames();
  const names = named !== undefined ? [named] : known.includes(chosen) ? known : [...known, chosen];
  const backends: BackendRow[] = [];
  const sections: Section[] = [{ name: "machine", findings: [...(await machineFindings()), ...settings] }];
  for (const name of names) {
    const isUnknown = (each: Finding): boolean =>
      name === chosen && name !== named && each.name === "backend" && each.fix === undefined;
    const fix = "unset GLOVEBOX_BACKEND";
    const findings = (await probeBackend(name, { options, isThorough: name === named })).map((each) =>
      isUnknown(each) ? { ...each, fix } : each,
    );
    if (!findings.some((each) => each.name === "credentials"))
      findings.push(...credentialFindings(await credentialsOf(name), process.env));
    sections.push({ name, findings });
    backends.push(toBackendRow(name, findings, await capabilitiesOf(name), await lastConformance(name)));
  }
  if (named === undefined) {
    sections.push({ name: "github", findings: credentialFindings(GITHUB, process.env) });
    sections.push({ name: "agents", findings: await agentFindings() });
  }
  return { sections, backends };
}
