import { readFile } from "node:fs/promises";
import { SandboxError } from "../../../contracts/errors.js";
import type { Changes } from "../../../contracts/types.js";
import type { RunReport } from "../types.js";
import { findRunDirectory, listRunDirectories, type RunDirectory } from "./run-directory.js";
import { isRunning } from "./run-owner.js";

/** The state of a run: as its report says, or `interrupted` when the process that did it is gone. */
export type RunState = RunReport["status"] | "interrupted" | "unknown";

/** One line of the list of runs. */
export interface RunSummary {
  runId: string;
  state: RunState;
  path: string;
  blueprint?: string;
  repo?: string;
  intent?: string;
  startedAt?: string;
  totalDurationMs?: number;
  prUrl?: string;
}

/** The report of a run as it is now, from its private files; undefined when none was written yet. */
export async function readReport(directory: RunDirectory): Promise<RunReport | undefined> {
  const text = await readFile(directory.state("report.json"), "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as RunReport;
  } catch (error) {
    throw new SandboxError("tampered", `report.json of run "${directory.runId}" cannot be read`, { cause: error });
  }
}

/** The state of a run. */
export async function stateOfRun(directory: RunDirectory, report: RunReport | undefined): Promise<RunState> {
  if (report === undefined) return (await isRunning(directory)) ? "running" : "unknown";
  if (report.status !== "running") return report.status;
  return (await isRunning(directory)) ? "running" : "interrupted";
}

/** Every run that is still there, the newest first. */
export async function listRuns(): Promise<RunSummary[]> {
  const summaries = await Promise.all((await listRunDirectories()).map(summarizeRun));
  return summaries.sort((a, b) => (b.startedAt ?? "").localeCompare(a.startedAt ?? ""));
}

async function summarizeRun(directory: RunDirectory): Promise<RunSummary> {
  const report = await readReport(directory).catch(() => undefined);
  const state = await stateOfRun(directory, report);
  const { runId, path } = directory;
  if (report === undefined) return { runId, state, path };
  const { blueprint, repo, intent, startedAt, totalDurationMs, pushResult } = report;
  const prUrl = pushResult?.prUrl;
  return { runId, state, path, blueprint, repo, intent, startedAt, totalDurationMs, ...(prUrl && { prUrl }) };
}

/** What a run changed, as it was written down. */
export async function changesOf(runId: string): Promise<Changes> {
  const directory = await findRunDirectory(runId);
  const patch = await readFile(directory.state("changes.patch"), "utf8").catch(() => undefined);
  if (patch === undefined) {
    throw new SandboxError("not_found", `Run "${runId}" has no patch yet`, { hint: `glovebox logs ${runId} -f` });
  }
  return { patch, files: (await readReport(directory))?.changes?.files ?? [] };
}
