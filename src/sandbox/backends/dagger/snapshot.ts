import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SnapshotRecord } from "../../../../contracts/backend.js";
import { SandboxError } from "../../../../contracts/errors.js";
import { readSnapshotRecord, snapshotsDir, writeSnapshotRecord } from "../../../ledger.js";
import { syncPath } from "../../../machine/atomic-file.js";
import { isoTime } from "../../../util/iso-time.js";
import { removeSnapshot as removeGitSnapshot, writeArchive } from "../../git.js";
import type { DaggerBase } from "./base.js";
import type { DaggerDriver } from "./driver.js";
import { saveLayer } from "./layer.js";
import { isSaved, type Recipe, type Saved } from "./recipe.js";
import type { Session } from "./session.js";

/** What a sandbox that can be saved was made of. */
export interface SnapshotOrigin {
  readonly session: Session;
  readonly base: DaggerBase;
  readonly recipe: Recipe;
}

/**
 * Saves a sandbox to a file and returns what belongs to it: everything that changed since its base or, while something runs, the files of its work
 * directory. An existing file stays until the new one is complete.
 */
export async function saveState(driver: DaggerDriver, origin: SnapshotOrigin, path: string): Promise<Saved> {
  const container = await driver.steps.settled();
  if (container === undefined || container === origin.base.container) {
    await saveFiles(driver, path);
    return origin.recipe;
  }
  const { session, base, recipe } = origin;
  let removed: readonly string[] = [];
  await replaced(path, async (draft) => {
    removed = await saveLayer(session, base.container, container, draft);
    await using file = await open(draft);
    await file.sync();
  });
  return { ...recipe, removed };
}

/** Saves all files of the work directory to an archive. */
export async function saveFiles(driver: DaggerDriver, path: string): Promise<void> {
  await replaced(path, async (draft) => {
    await writeArchive(driver.exportTree(driver.workDir), draft, () => true);
  });
}

async function replaced(path: string, write: (draft: string) => Promise<void>): Promise<void> {
  const draft = `${path}.new`;
  try {
    await rm(draft, { force: true });
    await write(draft);
    await rename(draft, path);
    await syncPath(dirname(path));
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** Writes the files of such an archive into the work directory. */
export async function loadFiles(driver: DaggerDriver, path: string): Promise<void> {
  await driver.importTree(createReadStream(path), driver.workDir);
}

/** Saves a sandbox permanently. An id of the graph alone would be worthless outside the engine that issued it. */
export async function saveSnapshot(driver: DaggerDriver, origin: SnapshotOrigin): Promise<string> {
  const id = `${driver.id}-${randomBytes(4).toString("hex")}`;
  const archive = join(snapshotsDir(), `${id}.tar`);
  try {
    const details = await saveState(driver, origin, archive);
    await writeSnapshotRecord({
      version: 1,
      id,
      sandboxId: driver.id,
      backend: "dagger",
      createdAt: isoTime(),
      archive,
      details,
    });
    return id;
  } catch (error) {
    await rm(archive, { force: true });
    throw error;
  }
}

/** Finds a snapshot of this backend. */
export async function findSnapshot(id: string): Promise<{ archive: string; saved: Saved }> {
  const { backend, archive, details } = await readSnapshotRecord(id);
  if (backend !== "dagger") {
    throw new SandboxError("conflict", `The snapshot "${id}" belongs to the ${backend} backend`, { retryable: false });
  }
  if (archive === undefined || !isSaved(details)) {
    throw new SandboxError("tampered", `The record of snapshot "${id}" is damaged`);
  }
  return { archive, saved: details };
}

/** Removes what a snapshot's record names. */
export async function removeSnapshot(record: SnapshotRecord): Promise<void> {
  if (record.gitDir !== undefined) await removeGitSnapshot(record);
  else if (record.archive !== undefined) await rm(record.archive, { force: true });
}
