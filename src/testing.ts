/** The conformance kit: every promise of the sandbox contract as a case, for built-in backends and your own. */

export { conformanceCases } from "./testing/cases.js";
export { createSandboxPool } from "./testing/pool.js";
export { formatReport } from "./testing/report.js";
export { runConformance, runConformanceCase } from "./testing/run.js";
export type {
  ConformanceCase,
  ConformanceContext,
  ConformanceHarness,
  ConformanceHost,
  ConformanceOptions,
  ConformanceReport,
  ConformanceResult,
  SandboxPool,
} from "./testing/types.js";
