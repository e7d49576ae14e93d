export { type AgentChoice, agentNames } from "./harness/agents.js";
export { type ApplyResult, applyRun } from "./harness/apply-run.js";
export * from "./harness/blueprint.js";
export { runBlueprint } from "./harness/engine.js";
export { readEvents } from "./harness/event-log.js";
export { formatChanges, formatCost, formatDuration, formatRunCost } from "./harness/format.js";
export { type GcReport, gcRuns, removeRun } from "./harness/gc-runs.js";
export { resolveInputs } from "./harness/inputs.js";
export {
  type AgentNeed,
  type BlueprintNeeds,
  needsOf,
  resolveSecrets,
  type SecretNeed,
  sandboxOptionsOf,
} from "./harness/needs.js";
export { pullRequestBody, pullRequestTitle } from "./harness/pull-request-text.js";
export { pushRunAgain } from "./harness/push-run.js";
export { changesOf, listRuns, type RunState, type RunSummary, readReport, stateOfRun } from "./harness/read-report.js";
export { reportHtml } from "./harness/report-html.js";
export { nextCommands, reportMarkdown } from "./harness/report-markdown.js";
export { type ResumeOptions, resumeRun } from "./harness/resume-run.js";
export { findRunDirectory, isRun, type RunDirectory } from "./harness/run-directory.js";
export { type PreparedRun, prepareRun, runHarness } from "./harness/run-harness.js";
export { isRunning } from "./harness/run-owner.js";
export { stopRun } from "./harness/stop-run.js";
export * from "./harness/types.js";
