export {
  type Checkpoint,
  forgetCheckpoints,
  readCheckpoints,
  readPatch,
  saveCheckpoint,
  savedBefore,
  savePatch,
} from "./store/checkpoints.js";
export { readEvents } from "./store/event-log.js";
export { toOutputEvent } from "./store/output-event.js";
export { changesOf, listRuns, type RunState, type RunSummary, readReport, stateOfRun } from "./store/read-report.js";
export { RunRecorder } from "./store/recorder.js";
export { resumedOptions, splitOptions } from "./store/resumed-options.js";
export {
  createRunDirectory,
  findRunDirectory,
  forgetMissingRuns,
  isRun,
  listRunDirectories,
  type RunDirectory,
  removeRunDirectory,
  writeBoth,
  writePublic,
} from "./store/run-directory.js";
export { assertRunId, branchOfRun, newRunId } from "./store/run-id.js";
export { claimRun, isRunning, releaseRun } from "./store/run-owner.js";
export { assertPlanUntouched, keptBlueprint, type RunPlan, readRunPlan, writeRunPlan } from "./store/run-plan.js";
export {
  filesOfPatch,
  forgetEndState,
  isOnThisMachine,
  livesInSandbox,
  patchOfSnapshot,
  readEndState,
  saveEndState,
  snapshotsOf,
  summarize,
  treeOfPatch,
  treeOfSnapshot,
} from "./store/saved-state.js";
export {
  createBranchAt,
  deleteUnmovedBranch,
  openSource,
  runsFolder,
  type SourceRepository,
  topOf,
} from "./store/source-repository.js";
export { requestStop, watchStopRequest } from "./store/stop-request.js";
