/** The conformance kit: every promise of the sandbox contract as a case, for backends of ours and of others. */

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
