export { readBatchOptions } from "./batch/plan-file.js";
export { readBatch, readBatchPage, readResults } from "./batch/read-batch.js";
export { type ReadTasksOptions, readTasks } from "./batch/read-tasks.js";
export { runBatch } from "./batch/run-batch.js";
export type * from "./batch/types.js";
