export type * from "../contracts/container-engine.js";
export { createContainerManager } from "./tasks/container-manager.js";
export {
  createSandboxManager,
  type ManagerFactory,
  type ManagerLoader,
  type ManagerOptions,
  managerNames,
  placeOptions,
  registerManager,
} from "./tasks/manager-registry.js";
export { type FileTask, parseFileTask, parseTaskFile, readTaskFile, type TaskFile } from "./tasks/task-file.js";
export type * from "./tasks/types.js";
