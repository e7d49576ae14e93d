import { toSandboxError } from "../../contracts/errors.js";
import { listSandboxes, removeSandbox } from "../sandbox.js";
import { createLimit } from "../util/limit.js";
import { LABELS } from "./attempt.js";
import { digestOf, type PlannedTask } from "./plan-tasks.js";
import type { JournalState } from "./task-states.js";
import type { BatchNote, BatchOptions } from "./types.js";

const AT_ONCE = 8;

/**
 * Settles what an earlier driver of the batch left: a sandbox that was made for the next attempt of a task, and not used, is returned under the task's
 * id to be adopted, if it would be opened in the same way again. All others are removed.
 */
export async function settleLeftSandboxes(
  batchId: string,
  { tasks }: JournalState,
  recipes: ReadonlyMap<string, string>,
  note: (note: BatchNote) => void,
): Promise<Map<string, string>> {
  const adopted = new Map<string, string>();
  const limit = createLimit(AT_ONCE);
  const left = (await listSandboxes({ labels: { [LABELS.batch]: batchId } })).filter(({ alive }) => !alive);
  const removals: Promise<void>[] = [];
  for (const { id, state, labels = {} } of left) {
    const task = labels[LABELS.task] ?? "";
    const known = tasks.get(task);
    const isNext = known !== undefined && labels[LABELS.attempt] === String(known.attempts + 1);
    const isWanted = isNext && known.outcome === undefined && labels[LABELS.recipe] === recipes.get(task);
    if (isWanted && state === "kept" && !adopted.has(task)) adopted.set(task, id);
    else removals.push(limit(() => removeLeft(id, note)));
  }
  await Promise.all(removals);
  return adopted;
}

/** Removes a sandbox that an earlier driver of the batch left. */
export async function removeLeft(id: string, note: (note: BatchNote) => void): Promise<void> {
  try {
    await removeSandbox(id);
  } catch (error) {
    const { code, message } = toSandboxError(error);
    // The first opening of a backend reaps, too.
    if (code === "not_found") return;
    note({ type: "leak", message: `Could not remove sandbox ${id} of an earlier run: ${message}`, code });
  }
}

/** What identifies each task and how its sandbox is opened, but for secrets: those are given anew. */
export async function recipesOf(
  tasks: readonly PlannedTask[],
  { sandbox = {}, backend }: BatchOptions,
): Promise<Map<string, string>> {
  const { splitOptions } = await import("../harness/parts.js");
  const how = [backend, sandbox.repo, (await splitOptions(sandbox)).written];
  return new Map(tasks.map(({ id, digest }) => [id, digestOf([digest, how])]));
}
