import { readFile } from "node:fs/promises";
import { SandboxError } from "../../../contracts/errors.js";
import { listSandboxes } from "../../sandbox.js";
import { indexOfNode } from "../node-range.js";
import {
  type Checkpoint,
  livesInSandbox,
  type RunDirectory,
  readCheckpoints,
  readEndState,
  readPatch,
  savedBefore,
} from "../store.js";
import type { Blueprint, NodeReport, RunReport } from "../types.js";
import type { ResumePoint } from "./session-options.js";

/**
 * Where a run is resumed. By itself it continues where it stopped, with the files as they were then; `from` a node it starts
 * with the files as they were before that node. Where those were not saved, the nodes since the last save are done again.
 */
export async function findResumePoint(
  directory: RunDirectory,
  blueprint: Blueprint,
  report: RunReport | undefined,
  from: string | undefined,
): Promise<ResumePoint> {
  const checkpoints = await readCheckpoints(directory);
  if (from !== undefined) return await reachable(directory, report, fromNode(blueprint, checkpoints, report, from));
  if (report?.finishedAt !== undefined) return await whereItStopped(directory, blueprint, checkpoints, report);
  return await reachable(directory, report, afterCheckpoint(blueprint, checkpoints, blueprint.nodes.length));
}

/** A snapshot that lives in its sandbox is restored there while that is kept; else its patch is applied to a new one. */
async function reachable(
  directory: RunDirectory,
  report: RunReport | undefined,
  point: ResumePoint,
): Promise<ResumePoint> {
  const { snapshotId, ...rest } = point;
  if (snapshotId === undefined || !(await livesInSandbox(snapshotId))) return point;
  const sandboxId = report?.sandbox === undefined ? undefined : await keptSandbox(report.sandbox.id);
  if (sandboxId !== undefined) return { ...point, sandboxId };
  const patch = await readPatch(directory, snapshotId);
  return patch === undefined ? point : { ...rest, patch };
}

function fromNode(
  blueprint: Blueprint,
  checkpoints: readonly Checkpoint[],
  report: RunReport | undefined,
  from: string,
): ResumePoint {
  const ids = blueprint.nodes.map(({ id }) => id);
  const index = indexOfNode(blueprint, from, "from");
  const done = new Set((report?.nodes ?? []).filter(isDone).map(({ id }) => id));
  for (const { results } of checkpoints) for (const node of Object.values(results)) if (isDone(node)) done.add(node.id);
  const missing = ids.slice(0, index).find((id) => !done.has(id));
  if (missing !== undefined) {
    throw new SandboxError(
      "invalid_argument",
      `The run cannot be resumed from "${from}": it never got past "${missing}"`,
      {
        hint: `--from ${missing}`,
      },
    );
  }
  return afterCheckpoint(blueprint, checkpoints, index);
}

/** After the last saved checkpoint before a place in the blueprint; at the start when there is none. */
function afterCheckpoint(blueprint: Blueprint, checkpoints: readonly Checkpoint[], index: number): ResumePoint {
  const saved = savedBefore(checkpoints, index);
  const startAt = blueprint.nodes[saved === undefined ? 0 : saved.index + 1]?.id;
  const { results = {}, snapshotId } = saved ?? {};
  return { ...(startAt !== undefined && { startAt }), results, ...(snapshotId !== undefined && { snapshotId }) };
}

async function whereItStopped(
  directory: RunDirectory,
  blueprint: Blueprint,
  checkpoints: readonly Checkpoint[],
  report: RunReport,
): Promise<ResumePoint> {
  const results = new Map(report.nodes.map((node) => [node.id, node]));
  const index = blueprint.nodes.findIndex(({ id }) => !isDone(results.get(id)));
  const next = blueprint.nodes[index];
  if (next === undefined) {
    throw new SandboxError("conflict", `Run "${report.runId}" has done all its nodes: ${report.status}`, {
      retryable: false,
      hint: `glovebox resume ${report.runId} --from <node> does some again; glovebox push ${report.runId} pushes it`,
    });
  }
  const before = blueprint.nodes.slice(0, index).flatMap(({ id }) => results.get(id) ?? []);
  const point = { startAt: next.id, results: Object.fromEntries(before.map((node) => [node.id, node])) };
  const kept = report.sandbox?.kept === true ? await keptSandbox(report.sandbox.id) : undefined;
  if (kept !== undefined) return { ...point, sandboxId: kept };
  const end = await readEndState(directory);
  if (end === undefined) return await reachable(directory, report, afterCheckpoint(blueprint, checkpoints, index));
  if (!(await livesInSandbox(end.snapshotId))) return { ...point, snapshotId: end.snapshotId };
  return { ...point, patch: await readFile(directory.state("changes.patch"), "utf8") };
}

async function keptSandbox(id: string): Promise<string | undefined> {
  const found = (await listSandboxes()).find((sandbox) => sandbox.id === id);
  return found?.state === "kept" && !found.alive ? id : undefined;
}

function isDone(node: NodeReport | undefined): boolean {
  if (node === undefined) return false;
  return node.status === "success" || node.status === "skipped" || node.tolerated === true;
}
