import type { Finding } from "../../../sandbox.js";
import type { BackendRow } from "./backend-row.js";

/** What was found about one backend, or about the machine. */
export interface Section {
  readonly name: string;
  readonly findings: readonly Finding[];
}

/** Everything that was found. */
export interface Examination {
  /** The default backend. */
  readonly chosen: string;
  /** The backend that it is about: the named one, or the default. */
  readonly subject: string;
  /** Whether that one works. */
  readonly works: boolean;
  readonly sections: readonly Section[];
  readonly backends: readonly BackendRow[];
}

/** Whether something is missing without which it does not work. */
export function isBroken(findings: Section["findings"]): boolean {
  return findings.some(({ status }) => status === "missing");
}
