import { digestOf, type PlannedTask } from "./plan-tasks.js";
import type { BatchOptions } from "./types.js";

/** What identifies each task and how its sandbox is opened, but for secrets: those are given anew. */
export async function recipesOf(
  tasks: readonly PlannedTask[],
  { sandbox = {}, backend }: BatchOptions,
): Promise<Map<string, string>> {
  const { splitOptions } = await import("../harness/parts.js");
  const how = [backend, sandbox.repo, (await splitOptions(sandbox)).written];
  return new Map(tasks.map(({ id, digest }) => [id, digestOf([digest, how])]));
}
