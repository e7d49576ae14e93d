export { type ApplyResult, applyRun } from "./run/apply-run.js";
export { type GcReport, gcRuns, removeRun } from "./run/gc-runs.js";
export { resolveInputs } from "./run/inputs.js";
export { type LandOptions, type LandResult, landRun } from "./run/land-run.js";
export { pushRunAgain } from "./run/push-run.js";
export { type ResumeOptions, resumeRun } from "./run/resume-run.js";
export { type PreparedRun, prepareRun, runHarness } from "./run/run-harness.js";
export { stopRun } from "./run/stop-run.js";
