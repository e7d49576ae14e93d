export { agentNames } from "./harness/agents.js";
export * from "./harness/blueprint.js";
export { runBlueprint } from "./harness/engine.js";
export { pullRequestBody, pullRequestTitle } from "./harness/github.js";
export type { InstallPlan, InstallStep } from "./harness/install.js";
export { findInstalledAgents, type InstalledAgent } from "./harness/installed-agents.js";
export { findNameSet, isNameSet, listNameSets, type NameSet } from "./harness/name-sets.js";
export * from "./harness/needs.js";
export {
  formatChanges,
  formatCost,
  formatDuration,
  formatRunCost,
  formatSecrets,
  formatTokens,
  nextCommands,
  reportHtml,
  reportMarkdown,
} from "./harness/report.js";
export * from "./harness/run.js";
export {
  changesOf,
  findRunDirectory,
  isRun,
  isRunning,
  listRuns,
  type RunDirectory,
  type RunState,
  type RunSummary,
  readEvents,
  readReport,
  stateOfRun,
} from "./harness/store.js";
export * from "./harness/types.js";
