export {
  createSandboxManager,
  type ManagerFactory,
  type ManagerLoader,
  managerNames,
  registerManager,
} from "./tasks/manager-registry.js";
export { commandOf, type RunOptions, runTasks, type TaskResult, type TaskStage } from "./tasks/run-tasks.js";
export { type FileTask, parseTaskFile, readTaskFile, type TaskFile } from "./tasks/task-file.js";
export type * from "./tasks/types.js";
