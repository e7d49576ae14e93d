import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { syncDirectory } from "../atomic-file.js";
import { SandboxError } from "../errors.js";
import { writeArchive } from "../git/archive.js";
import { removeSnapshot as removeGitSnapshot } from "../git/remove-snapshot.js";
import { readSnapshotRecord, type SnapshotRecord, snapshotsDir, writeSnapshotRecord } from "../snapshot-record.js";
import type { DaggerDriver } from "./driver.js";
import { isRecipe, type Recipe } from "./recipe.js";

/** Saves all files of the work directory to an archive of ours. */
export async function saveFiles(driver: DaggerDriver, path: string): Promise<void> {
  await rm(path, { force: true });
  await writeArchive(driver.exportTree(driver.workDir), path, () => true);
}

/** Puts the files of such an archive into the work directory. */
export async function loadFiles(driver: DaggerDriver, path: string): Promise<void> {
  await driver.importTree(createReadStream(path), driver.workDir);
}

/**
 * Saves a sandbox for good: how its container is built and the files of its work directory, which any engine can do
 * again. An id of the graph alone would be worth nothing outside of the engine that gave it.
 */
export async function saveSnapshot(driver: DaggerDriver, recipe: Recipe): Promise<string> {
  const id = `${driver.id}-${randomBytes(4).toString("hex")}`;
  const archive = join(snapshotsDir(), `${id}.tar`);
  try {
    await saveFiles(driver, archive);
    await syncDirectory(snapshotsDir());
    await writeSnapshotRecord({
      version: 1,
      id,
      sandboxId: driver.id,
      backend: "dagger",
      createdAt: new Date().toISOString(),
      archive,
      details: recipe,
    });
    return id;
  } catch (error) {
    await rm(archive, { force: true });
    throw error;
  }
}

/** Finds a snapshot of this backend. */
export async function findSnapshot(id: string): Promise<{ archive: string; recipe: Recipe }> {
  const { backend, archive, details } = await readSnapshotRecord(id);
  if (backend !== "dagger") {
    throw new SandboxError("conflict", `The snapshot "${id}" is one of the ${backend} backend`, { retryable: false });
  }
  if (archive === undefined || !isRecipe(details)) {
    throw new SandboxError("tampered", `The record of snapshot "${id}" is damaged`);
  }
  return { archive, recipe: details };
}

/** Takes away what a snapshot's record names. */
export async function removeSnapshot(record: SnapshotRecord): Promise<void> {
  if (record.gitDir !== undefined) await removeGitSnapshot(record);
  else if (record.archive !== undefined) await rm(record.archive, { force: true });
}
