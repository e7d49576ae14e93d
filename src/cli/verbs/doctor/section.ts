import type { Finding } from "../../../sandbox.js";

/** What was found about one backend, or about the machine. */
export interface Section {
  readonly name: string;
  readonly findings: readonly Finding[];
}
