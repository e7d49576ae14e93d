import type { BatchPaths } from "./batch-folder.js";
import type { BatchNote, BatchOptions, BatchResult } from "./types.js";

/** Output that a result keeps of each stream, in bytes, unless the batch says otherwise. */
export const MAX_OUTPUT = 65_536;

/** What a task led to, as its runner knows it. */
export type TaskEnding = Omit<BatchResult, "taskId" | "attempt" | "endedAt">;

/** One attempt to run one task, as its runner sees it. Whatever goes wrong is thrown. */
export interface Attempt {
  readonly number: number;
  readonly batchId: string;
  /** Identifies the task and how its sandbox is opened. A sandbox with another one is not adopted. */
  readonly recipe: string;
  readonly options: BatchOptions;
  readonly paths: BatchPaths;
  /** Aborted when the batch stops. */
  readonly signal: AbortSignal;
  /** A sandbox that was made for this attempt and not used: it is reopened. */
  readonly adopted: string | undefined;
  /** What the attempt needs is there. Await it before the task does anything: it is then on the disk that it was started. */
  started(resource: string): Promise<void>;
  /** What the attempt has cost so far in US dollars, whatever becomes of it. */
  spent(usd: number): void;
  /** The task has its result. Resolves once that is on the disk. */
  ended(ending: TaskEnding): Promise<void>;
  note(note: BatchNote): void;
}

/** Labels on everything that is made for an attempt. */
export const LABELS = {
  batch: "glovebox.batch",
  task: "glovebox.task",
  attempt: "glovebox.attempt",
  recipe: "glovebox.recipe",
} as const;

/** The labels of an attempt. */
export function labelsOf(
  { batchId, number, recipe }: Pick<Attempt, "batchId" | "number" | "recipe">,
  taskId: string,
): Record<string, string> {
  return { [LABELS.batch]: batchId, [LABELS.task]: taskId, [LABELS.attempt]: String(number), [LABELS.recipe]: recipe };
}
