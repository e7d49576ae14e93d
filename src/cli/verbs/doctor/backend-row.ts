import type { Capabilities } from "../../../../contracts/types.js";
import type { ConformanceSummary } from "../../../sandbox/host.js";
import type { Finding } from "../../../sandbox.js";

type Column =
  | ("installed" | "credentials" | "reachable" | "isolation" | "limits")
  | ("network" | "paths" | "snapshot" | "fork" | "conformance");

/** The columns of `doctor`, in order. */
export const COLUMNS: readonly Column[] = [
  ...(["installed", "credentials", "reachable", "isolation", "limits"] as const),
  ...(["network", "paths", "snapshot", "fork", "conformance"] as const),
];

/** One backend as `doctor` shows it. */
export interface BackendRow extends Readonly<Record<Column, string>> {
  readonly backend: string;
  /** Why something is missing, by the name of the capability. */
  readonly reasons: NonNullable<Capabilities["reasons"]>;
  /** The fixes, each with the columns it is for. */
  readonly fixes: readonly { readonly of: readonly Column[]; readonly fix: string }[];
}

/** The findings that belong to a column, whatever the backend. */
const FINDINGS: Readonly<Partial<Record<Column, readonly string[]>>> = {
  installed: ["backend", "installed", "package", "system", "bubblewrap", "guest"],
  credentials: ["credentials"],
  reachable: ["reachable", "engine", "account", "session", "self-test"],
  isolation: ["user namespaces", "seccomp", "privileges", "confinement"],
  limits: ["limits"],
  network: ["network"],
};

const UNKNOWN = "-";

/** Makes the row of a backend from its findings, its capabilities and its last conformance run. */
export function toBackendRow(
  backend: string,
  findings: readonly Finding[],
  capabilities: Capabilities | undefined,
  last: ConformanceSummary | undefined,
): BackendRow {
  const about = (column: Column): Finding[] => findings.filter(({ name }) => FINDINGS[column]?.includes(name));
  const stateOf = (column: Column, otherwise: string): string => {
    const states = about(column).map(({ status }) => status);
    if (states.length === 0) return otherwise;
    if (states.includes("missing")) return "no";
    return states.includes("unused") ? (column === "reachable" ? "not tried" : "no") : "yes";
  };
  const list = (words: readonly string[] | undefined): string =>
    words === undefined ? UNKNOWN : words.join(" ") || "none";
  const isBroken = findings.some(({ status }) => status === "missing");
  const again = last === undefined || (last.counts["failed"] ?? 0) > 0;
  const fixOf = (column: Column): string | undefined =>
    column === "conformance"
      ? again
        ? `glovebox doctor --conformance ${backend}`
        : undefined
      : about(column).find(({ fix, status }) => fix !== undefined && status !== "ok")?.fix;
  const fixes = [...new Set(COLUMNS.map(fixOf))].flatMap((fix) => {
    return fix === undefined ? [] : [{ of: COLUMNS.filter((column) => fixOf(column) === fix), fix }];
  });
  return {
    backend,
    installed: stateOf("installed", "yes"),
    credentials: stateOf("credentials", "not needed"),
    // If something is missing, nobody tried to reach it.
    reachable: stateOf("reachable", isBroken ? "no" : "yes"),
    isolation: capabilities?.isolation ?? UNKNOWN,
    limits: list(capabilities?.limits),
    network: list(capabilities?.network),
    paths: list(capabilities && (capabilities.paths ?? ["workdir"])),
    snapshot: capabilities?.snapshot ?? UNKNOWN,
    fork: capabilities?.fork ?? UNKNOWN,
    conformance: describeRun(last),
    reasons: capabilities?.reasons ?? {},
    fixes,
  };
}

function describeRun(last: ConformanceSummary | undefined): string {
  if (last === undefined) return "never run";
  const { passed = 0, failed = 0, refused = 0 } = last.counts;
  const outcome = failed > 0 ? `${failed} FAILED, ${passed} passed` : `${passed} passed, ${refused} refused`;
  return `${outcome} (${last.time.slice(0, 10)}, ${last.on})`;
}
