import { readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { writeFileAtomic } from "../../sandbox/host.js";
import type { NodeReport } from "../types.js";
import type { RunDirectory } from "./run-directory.js";

/** The state after a node: its result and those before it, and the files when they were saved. */
export interface Checkpoint {
  readonly version: 1;
  /** Place of the node in the blueprint, from 0; -1 before the first one. */
  readonly index: number;
  /** `start` before the first one. */
  readonly nodeId: string;
  /** False where the backend cannot save files: then the nodes before are done again. */
  readonly isSaved: boolean;
  /** What has the files. Absent in one that is saved: nothing had changed since the run started. */
  readonly snapshotId?: string;
  readonly results: Readonly<Record<string, NodeReport>>;
  /** Of the sandbox, in which the sessions of agents were. Absent in one of an older version. */
  readonly workDir?: string;
  /** ISO 8601. */
  readonly savedAt: string;
}

/** Writes a checkpoint down; with new files so that it survives a power loss too. */
export async function saveCheckpoint(
  directory: RunDirectory,
  checkpoint: Checkpoint,
  hasNewFiles: boolean,
): Promise<void> {
  const path = pathOf(directory, checkpoint);
  const text = `${JSON.stringify(checkpoint, undefined, 2)}\n`;
  if (hasNewFiles) return await writeFileAtomic(path, text);
  await writeFile(`${path}.tmp`, text, { mode: 0o600 });
  await rename(`${path}.tmp`, path);
}

/** Writes down the archive of the agents' sessions as they were after a node. */
export async function saveSessions(
  directory: RunDirectory,
  at: Pick<Checkpoint, "index" | "nodeId">,
  archive: Uint8Array,
): Promise<void> {
  const path = sessionsPathOf(directory, at);
  await writeFile(`${path}.tmp`, archive, { mode: 0o600 });
  await rename(`${path}.tmp`, path);
}

/** The agents' sessions as they were written down. */
export interface SavedSessions {
  readonly archive: Uint8Array;
  /** Where they were; undefined where that was not written down. */
  readonly workDir: string | undefined;
}

/** The agents' sessions that were written last before a place in the blueprint; undefined when there are none. */
export async function readSessions(directory: RunDirectory, before: number): Promise<SavedSessions | undefined> {
  const earlier = (await readCheckpoints(directory)).filter(({ index }) => index < before).reverse();
  for (const checkpoint of earlier) {
    const archive = await readFile(sessionsPathOf(directory, checkpoint)).catch(() => undefined);
    if (archive !== undefined) return { archive, workDir: checkpoint.workDir };
  }
  return undefined;
}

function sessionsPathOf(directory: RunDirectory, { index, nodeId }: Pick<Checkpoint, "index" | "nodeId">): string {
  return directory.state("checkpoints", `${index + 1}-${nodeId}.sessions.tar`);
}

function pathOf(directory: RunDirectory, { index, nodeId }: Pick<Checkpoint, "index" | "nodeId">): string {
  return directory.state("checkpoints", `${index + 1}-${nodeId}.json`);
}

/** The checkpoints of a run, in the order of its nodes. An unreadable one counts as missing. */
export async function readCheckpoints(directory: RunDirectory): Promise<Checkpoint[]> {
  const names = (await readdir(directory.state("checkpoints"))).filter((name) => name.endsWith(".json"));
  const found = await Promise.all(names.map((name) => readCheckpoint(directory.state("checkpoints", name))));
  return found.filter((each) => each !== undefined).sort((a, b) => a.index - b.index);
}

async function readCheckpoint(path: string): Promise<Checkpoint | undefined> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as Checkpoint;
  } catch {
    // A machine that lost its power may have left it empty; the one before it is then the last.
    return undefined;
  }
}

/** The last checkpoint whose files were saved and that lies before a node. */
export function savedBefore(checkpoints: readonly Checkpoint[], index: number): Checkpoint | undefined {
  return checkpoints.filter(({ isSaved, index: at }) => isSaved && at < index).at(-1);
}

/** Removes the checkpoints after a place in the blueprint, so that a later session does not use them. */
export async function forgetCheckpoints(directory: RunDirectory, from: number): Promise<void> {
  for (const checkpoint of await readCheckpoints(directory)) {
    if (checkpoint.index < from) continue;
    await rm(pathOf(directory, checkpoint));
    await rm(sessionsPathOf(directory, checkpoint), { force: true });
  }
}

/** Writes down what a snapshot changes, for when it is gone with its sandbox. */
export async function savePatch(directory: RunDirectory, snapshotId: string, patch: string): Promise<void> {
  await writeFileAtomic(directory.state("checkpoints", `${snapshotId}.patch`), patch);
}

/** What a snapshot changes; undefined when that was not written down. */
export async function readPatch(directory: RunDirectory, snapshotId: string): Promise<string | undefined> {
  return await readFile(directory.state("checkpoints", `${snapshotId}.patch`), "utf8").catch(() => undefined);
}
