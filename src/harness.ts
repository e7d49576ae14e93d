export { type AgentChoice, agentNames } from "./harness/agents.js";
export * from "./harness/blueprint.js";
export { runBlueprint } from "./harness/engine.js";
export { pullRequestBody, pullRequestTitle } from "./harness/github/pull-request-text.js";
export { formatChanges, formatCost, formatDuration, formatRunCost } from "./harness/report/format.js";
export {
  changesOf,
  listRuns,
  type RunState,
  type RunSummary,
  readReport,
  stateOfRun,
} from "./harness/report/read-report.js";
export { reportHtml } from "./harness/report/report-html.js";
export { nextCommands, reportMarkdown } from "./harness/report/report-markdown.js";
export { type ApplyResult, applyRun } from "./harness/run/apply-run.js";
export { type GcReport, gcRuns, removeRun } from "./harness/run/gc-runs.js";
export { resolveInputs } from "./harness/run/inputs.js";
export {
  type AgentNeed,
  type BlueprintNeeds,
  needsOf,
  resolveSecrets,
  type SecretNeed,
  sandboxOptionsOf,
} from "./harness/run/needs.js";
export { pushRunAgain } from "./harness/run/push-run.js";
export { type ResumeOptions, resumeRun } from "./harness/run/resume-run.js";
export { type PreparedRun, prepareRun, runHarness } from "./harness/run/run-harness.js";
export { stopRun } from "./harness/run/stop-run.js";
export { readEvents } from "./harness/store/event-log.js";
export { findRunDirectory, isRun, type RunDirectory } from "./harness/store/run-directory.js";
export { isRunning } from "./harness/store/run-owner.js";
export * from "./harness/types.js";
