import { SandboxError } from "../../contracts/errors.js";
import { liveHolder } from "../machine/lock-file.js";
import { pathsOf } from "./batch-folder.js";
import { batchPage } from "./batch-page.js";
import { readJournal } from "./journal.js";
import { readPlanFile } from "./plan-file.js";
import { planTasks } from "./plan-tasks.js";
import { resultLines } from "./result-lines.js";
import type { JournalState, TaskState } from "./task-states.js";
import type { BatchResult, BatchStatus, TaskOutcome } from "./types.js";

/** How far a batch is, whether or not it runs. */
export async function readBatch(out: string): Promise<BatchStatus> {
  const { paths, state, tasks } = await read(out);
  const { header } = state;
  const states = tasks.flatMap(({ id }) => {
    const known = state.tasks.get(id);
    return known === undefined ? [] : [{ id, ...known }];
  });
  const count = (outcome: TaskOutcome): number => states.filter((each) => each.outcome === outcome).length;
  const holder = liveHolder(paths.lock);
  const done = states.filter(({ outcome }) => outcome !== undefined).length;
  return {
    id: header?.id ?? "",
    folder: paths.folder,
    createdAt: header?.createdAt ?? "",
    ...(header?.shard !== undefined && { shard: header.shard }),
    total: tasks.length,
    done,
    passed: count("passed"),
    failed: count("failed"),
    refused: count("refused"),
    infra: count("infra"),
    started: states.filter(({ outcome, isStarted }) => outcome === undefined && isStarted).length,
    causes: Object.fromEntries(state.causes),
    ...(state.cost > 0 && { costUsd: state.cost }),
    ...(holder?.owner !== undefined && { pid: holder.owner.pid }),
    problems: states.flatMap(problemOf),
  };
}

/** The result of every task that has one, each once; of several directories if they are parts of one batch. */
export async function* readResults(...outs: readonly string[]): AsyncGenerator<BatchResult, void, undefined> {
  const seen = new Map<string, string>();
  for (const out of outs) {
    const { paths, state, tasks } = await read(out);
    for (const { id } of tasks) {
      const other = seen.get(id);
      if (other !== undefined) {
        throw new SandboxError("conflict", `The task "${id}" is in ${other} and in ${paths.folder}`, {
          retryable: false,
          hint: "read batches together only if they are the shards of one",
        });
      }
      seen.set(id, paths.folder);
    }
    const wanted = new Set(tasks.map(({ id }) => id));
    for await (const result of resultLines(paths.results, state.resultsEnd)) {
      const known = state.tasks.get(result.taskId);
      if (wanted.has(result.taskId) && isLatest(result, known)) yield result;
    }
  }
}

/** The page of a batch, for a browser. */
export async function readBatchPage(out: string): Promise<string> {
  const { paths, state, tasks } = await read(out);
  return await batchPage(paths, state, tasks);
}

async function read(out: string): Promise<{
  paths: ReturnType<typeof pathsOf>;
  state: JournalState;
  tasks: ReturnType<typeof planTasks>["tasks"];
}> {
  const paths = pathsOf(out);
  const { options } = await readPlanFile(paths.plan);
  const state = await readJournal(paths.journal);
  return { paths, state, tasks: planTasks({ ...options, out }).tasks };
}

/** A task that was run once more has an older line, too. */
function isLatest({ attempt, outcome }: BatchResult, state: TaskState | undefined): boolean {
  return state !== undefined && state.outcome === outcome && state.attempts === attempt;
}

function problemOf({ id, outcome, failure }: TaskState & { id: string }): BatchStatus["problems"] {
  if (failure === undefined || (outcome !== "refused" && outcome !== "infra")) return [];
  return [{ taskId: id, outcome, ...failure }];
}
