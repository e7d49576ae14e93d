import { readdir, readFile } from "node:fs/promises";
import { SandboxError } from "../sandbox/errors.js";
import { writeFileAtomic } from "../sandbox/host.js";
import type { RunDirectory } from "./run-directory.js";
import type { NodeReport } from "./types.js";

/** What there was after a node: its result and those before it, and the files when they were saved. */
export interface Checkpoint {
  readonly version: 1;
  /** Place of the node in the blueprint, from 0. */
  readonly index: number;
  readonly nodeId: string;
  /** Absent: the files were not saved here; the nodes since the last save are done again. */
  readonly snapshotId?: string;
  readonly results: Readonly<Record<string, NodeReport>>;
  /** ISO 8601. */
  readonly savedAt: string;
}

/** Writes a checkpoint down. */
export async function saveCheckpoint(directory: RunDirectory, checkpoint: Checkpoint): Promise<void> {
  const path = directory.at("checkpoints", `${checkpoint.index + 1}-${checkpoint.nodeId}.json`);
  await writeFileAtomic(path, `${JSON.stringify(checkpoint, undefined, 2)}\n`);
}

/** The checkpoints of a run, in the order of its nodes. One that cannot be read is `tampered`. */
export async function readCheckpoints(directory: RunDirectory): Promise<Checkpoint[]> {
  const names = (await readdir(directory.at("checkpoints"))).filter((name) => name.endsWith(".json"));
  const found = await Promise.all(
    names.map(async (name) => {
      const text = await readFile(directory.at("checkpoints", name), "utf8");
      try {
        return JSON.parse(text) as Checkpoint;
      } catch (error) {
        throw new SandboxError("tampered", `The checkpoint ${name} of run "${directory.runId}" is damaged`, {
          cause: error,
        });
      }
    }),
  );
  return found.sort((a, b) => a.index - b.index);
}

/** The last checkpoint whose files were saved and that lies before a node. */
export function savedBefore(checkpoints: readonly Checkpoint[], index: number): Checkpoint | undefined {
  return checkpoints.filter((each) => each.snapshotId !== undefined && each.index < index).at(-1);
}
