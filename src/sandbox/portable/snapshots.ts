import { SandboxError } from "../../../contracts/errors.js";
import { findSnapshotRecord, snapshotName, withSnapshotName } from "../../ledger.js";
import * as is from "../../util/schema.js";
import { check, type Schema } from "../../util/schema.js";
import { reasonFor } from "../capabilities.js";
import type { SnapshotOptions } from "../types.js";
import type { OpenSandboxState } from "./open-sandbox-state.js";

/** What `snapshot` takes. */
export const snapshotOptions: Schema<SnapshotOptions> = is.object({ name: snapshotName, signal: is.signal });

/** Saves the files of a sandbox and returns the id, under a name if one is asked for. */
export async function saveSnapshot(
  { driver, operationTimeout }: OpenSandboxState,
  { name }: SnapshotOptions,
  signal: AbortSignal,
): Promise<string> {
  const save = driver.snapshot?.bind(driver);
  if (save === undefined) throw missing(driver, "snapshot");
  if (name === undefined) return await save(signal);
  return await withSnapshotName(name, () => save(signal), { timeout: operationTimeout, signal });
}

/** Resets the files of a sandbox to a snapshot. */
export async function restoreSnapshot({ driver }: OpenSandboxState, idOrName: string): Promise<void> {
  check(idOrName, is.text, "snapshot");
  if (driver.restore === undefined) throw missing(driver, "restore");
  await driver.restore(await idOf(idOrName));
}

/** What no record has may still be known to the driver, which otherwise says so. */
async function idOf(idOrName: string): Promise<string> {
  const record = await findSnapshotRecord(idOrName).catch((error: unknown) => {
    if (!(error instanceof SandboxError) || error.code !== "not_found") throw error;
  });
  return record?.id ?? idOrName;
}

function missing({ backend, capabilities }: OpenSandboxState["driver"], operation: string): SandboxError {
  const why = reasonFor("snapshot", capabilities);
  return new SandboxError("unsupported", `The ${backend} backend has no ${operation}${why}`);
}
