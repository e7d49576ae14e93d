import { deleteSnapshot, removeSandbox } from "../../sandbox.js";
import {
  assertNotRunning,
  deleteUnmovedBranch,
  findRunDirectory,
  forgetMissingRuns,
  isRunning,
  listRunDirectories,
  type RunDirectory,
  readReport,
  readRunPlan,
  removeRunDirectory,
  snapshotsOf,
} from "../store.js";

/** What was removed, and what was left because it is in use or too new. */
export interface GcReport {
  removed: string[];
  left: string[];
}

/** Removes runs that are over and older than this, with their snapshots, kept sandboxes and unmoved branches. */
export async function gcRuns(opts: { olderThan: number; dryRun?: boolean; signal?: AbortSignal }): Promise<GcReport> {
  const report: GcReport = { removed: [], left: [] };
  for (const directory of await listRunDirectories()) {
    const isOver = opts.signal?.aborted === true;
    if (isOver || !(await isOld(directory, opts.olderThan)) || (await isRunning(directory))) {
      report.left.push(directory.runId);
      continue;
    }
    if (opts.dryRun !== true) await remove(directory);
    report.removed.push(directory.runId);
  }
  if (opts.dryRun !== true) await forgetMissingRuns();
  return report;
}

/** Removes one run that is over, whatever its age, with all that belongs to it. One that is running is `conflict`. */
export async function removeRun(runId: string): Promise<void> {
  const directory = await findRunDirectory(runId);
  await assertNotRunning(directory);
  await remove(directory);
}

async function isOld(directory: RunDirectory, olderThan: number): Promise<boolean> {
  const report = await readReport(directory).catch(() => undefined);
  const plan = await readRunPlan(directory).catch(() => undefined);
  const last = Date.parse(report?.finishedAt ?? report?.startedAt ?? plan?.createdAt ?? "");
  // One without even an age is nobody's any more.
  return Number.isNaN(last) || Date.now() - last >= olderThan;
}

async function remove(directory: RunDirectory): Promise<void> {
  const snapshots = await snapshotsOf(directory).catch(() => []);
  const report = await readReport(directory).catch(() => undefined);
  const plan = await readRunPlan(directory).catch(() => undefined);
  // Each of them may have been removed by hand before.
  if (report?.sandbox !== undefined) await removeSandbox(report.sandbox.id).catch(() => undefined);
  for (const id of snapshots) await deleteSnapshot(id).catch(() => undefined);
  if (plan?.gitDir !== undefined && plan.baseCommit !== undefined) {
    await deleteUnmovedBranch(plan.gitDir, plan.branch, plan.baseCommit).catch(() => undefined);
  }
  await removeRunDirectory(directory);
}
