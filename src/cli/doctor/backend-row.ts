import type { Capabilities } from "../../../contracts/types.js";
import type { ConformanceNote, Finding } from "../../sandbox.js";

/** What one backend is here, in words. */
export interface BackendRow {
  readonly backend: string;
  readonly installed: string;
  readonly credentials: string;
  readonly reachable: string;
  readonly isolation: string;
  readonly limits: string;
  readonly network: string;
  readonly snapshot: string;
  readonly fork: string;
  readonly conformance: string;
  /** The first line that mends something; absent when nothing is to be mended. */
  readonly fix?: string;
}

const UNKNOWN = "-";

/** Makes the row of a backend out of what was found, what it says it keeps, and what the kit said last. */
export function toBackendRow(
  backend: string,
  findings: readonly Finding[],
  capabilities: Capabilities | undefined,
  last: ConformanceNote | undefined,
): BackendRow {
  const broken = findings.filter(({ status }) => status === "missing");
  const stateOf = (name: string, otherwise: string): string => {
    const finding = findings.find((each) => each.name === name);
    if (finding === undefined) return otherwise;
    return finding.status === "ok" ? "yes" : "no";
  };
  const isThere = !broken.some(({ name }) => ["backend", "installed", "system"].includes(name));
  const list = (words: readonly string[] | undefined): string =>
    words === undefined ? UNKNOWN : words.join(" ") || "none";
  const fix = (broken.find((each) => each.fix) ?? findings.find((each) => each.fix && each.status !== "ok"))?.fix;
  return {
    backend,
    installed: stateOf("installed", isThere ? "yes" : "no"),
    credentials: stateOf("credentials", "not needed"),
    reachable: stateOf("reachable", stateOf("engine", broken.length === 0 ? "yes" : "no")),
    isolation: capabilities?.isolation ?? UNKNOWN,
    limits: list(capabilities?.limits),
    network: list(capabilities?.network),
    snapshot: capabilities?.snapshot ?? UNKNOWN,
    fork: capabilities?.fork ?? UNKNOWN,
    conformance: describeRun(last),
    ...(fix !== undefined && { fix }),
  };
}

function describeRun(last: ConformanceNote | undefined): string {
  if (last === undefined) return "never run";
  const { passed = 0, failed = 0, refused = 0 } = last.counts;
  const outcome = failed > 0 ? `${failed} FAILED, ${passed} passed` : `${passed} passed, ${refused} refused`;
  return `${outcome} (${last.time.slice(0, 10)}, ${last.on})`;
}
