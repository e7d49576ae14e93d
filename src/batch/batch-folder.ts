import { randomBytes } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { syncPath } from "../machine/atomic-file.js";
import { type Contender, createContender } from "../machine/lock-file.js";
import { isoTime } from "../util/iso-time.js";
import { Journal } from "./journal.js";
import { JOURNAL_VERSION } from "./journal-record.js";
import type { PlannedTask } from "./plan-tasks.js";
import type { BatchOptions } from "./types.js";

/** The files of a batch. */
export interface BatchPaths {
  readonly folder: string;
  readonly journal: string;
  readonly results: string;
  readonly plan: string;
  readonly page: string;
  readonly runs: string;
  /** What its lock is named after. */
  readonly lock: string;
}

/** Where the files of a batch are. */
export function pathsOf(out: string): BatchPaths {
  const folder = resolve(out);
  return {
    folder,
    journal: join(folder, "journal.jsonl"),
    results: join(folder, "results.jsonl"),
    plan: join(folder, "batch.json"),
    page: join(folder, "report.html"),
    runs: join(folder, "runs"),
    lock: join(folder, "journal"),
  };
}

/** A batch that this process drives, and no other. */
export interface OpenBatch {
  readonly journal: Journal;
  readonly paths: BatchPaths;
  readonly id: string;
  /** Whether another process has driven it before. */
  readonly isResumed: boolean;
  close(): Promise<void>;
}

/** Opens or makes the directory of a batch. The second driver is refused, and so is the journal of another batch. */
export async function openBatch(
  { out, ifChanged = "refuse", retry }: Pick<BatchOptions, "out" | "ifChanged" | "retry">,
  planned: { tasks: readonly PlannedTask[]; digest: string; shard: string | undefined },
): Promise<OpenBatch> {
  const paths = pathsOf(out);
  const made = makeFolder(paths.folder);
  const lock = await lockBatch(paths);
  try {
    refuseForeign(paths);
    const journal = await Journal.open(paths.journal, paths.results);
    try {
      const { header } = journal.state;
      if (
        header !== undefined &&
        ifChanged === "refuse" &&
        (header.tasks !== planned.digest || header.shard !== planned.shard)
      ) {
        throw ofAnother(paths, header.shard, planned.shard);
      }
      const id = header?.id ?? randomBytes(8).toString("hex");
      await plan(journal, planned, id, retry);
      for (const each of [paths.folder, ...made.map(dirname)]) await syncPath(each);
      const close = async (): Promise<void> => {
        await journal.close();
        lock.leave();
      };
      return { journal, paths, id, isResumed: header !== undefined, close };
    } catch (error) {
      await journal.close();
      throw error;
    }
  } catch (error) {
    lock.leave();
    throw error;
  }
}

/** Writes down what is to be run: what is new, what has changed, and what is run once more. */
async function plan(
  journal: Journal,
  { tasks, digest, shard }: Parameters<typeof openBatch>[1],
  id: string,
  retry: BatchOptions["retry"] = [],
): Promise<void> {
  const { header, tasks: states } = journal.state;
  if (header?.tasks !== digest || header.shard !== shard) {
    const { length: count } = tasks;
    await journal.add({
      t: "batch",
      version: JOURNAL_VERSION,
      id,
      tasks: digest,
      count,
      ...(shard !== undefined && { shard }),
      createdAt: isoTime(),
    });
  }
  const open = tasks.filter((task) => {
    const state = states.get(task.id);
    if (state?.digest !== task.digest) return true;
    return state.outcome !== undefined && retry.includes(state.outcome);
  });
  await journal.addAll(open.map((task) => ({ t: "planned", task: task.id, digest: task.digest })));
}

/** Returns the directories that had to be made. */
function makeFolder(folder: string): string[] {
  try {
    const there = lstatSync(folder, { throwIfNoEntry: false });
    if (there?.isSymbolicLink() === true) {
      throw new SandboxError("permission_denied", `${folder} is a link, and its target would get the results`, {
        hint: "name the directory itself with out",
      });
    }
    if (there?.isDirectory() === false) {
      throw new SandboxError("invalid_argument", `${folder} is a file`, { hint: "name a directory with out" });
    }
    const missing: string[] = [];
    for (let at = folder; !existsSync(at); at = dirname(at)) missing.unshift(at);
    // Not `recursive`: where nobody can make a directory, as in /proc, Node tries for ever.
    for (const each of missing) makeDirectory(each);
    return missing;
  } catch (error) {
    throw toSandboxError(error, { operation: "make the directory of the batch" });
  }
}

function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // The driver of another shard was faster.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** Without a journal, files with the names of ours are somebody's, or results whose journal is gone: they would be lost. */
function refuseForeign({ folder, journal, results, plan, page }: BatchPaths): void {
  const isThere = (path: string): boolean => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0;
  const found = isThere(journal) ? undefined : [results, plan, page].find(isThere);
  if (found === undefined) return;
  throw new SandboxError("conflict", `${found} would be overwritten: ${folder} has no journal of a batch`, {
    retryable: false,
    hint: "name another directory with out, or move the file away",
  });
}

async function lockBatch({ folder, lock: base }: BatchPaths): Promise<Contender> {
  try {
    const lock = createContender(base, folder);
    const holder = await lock.tryOnce().catch((error: unknown) => {
      lock.leave();
      throw error;
    });
    if (holder === undefined) return lock;
    lock.leave();
    throw new SandboxError(
      "conflict",
      `Process ${holder.owner?.pid ?? "unknown"} already runs the batch in ${folder}`,
      {
        retryable: false,
        hint: "wait for it or end it; glovebox batch status shows how far it is",
      },
    );
  } catch (error) {
    const failure = toSandboxError(error, { operation: "lock the batch" });
    if (failure.code !== "unsupported") throw failure;
    throw new SandboxError("unsupported", failure.message, { cause: error, hint: "name another directory with out" });
  }
}

function ofAnother({ journal }: BatchPaths, had: string | undefined, wanted: string | undefined): SandboxError {
  const what = had === wanted ? "has other tasks" : `is of ${had === undefined ? "no shard" : `shard ${had}`}`;
  return new SandboxError("invalid_argument", `${journal} belongs to another batch: it ${what}`, {
    hint: "name another directory with out, or run the tasks that it was made for",
  });
}
