import type { Backend, Resource } from "../../contracts/backend.js";
import type { PendingRemoval } from "../../contracts/driver.js";
import { SandboxError } from "../../contracts/errors.js";
import { failpoint } from "../machine/failpoint.js";
import { withLock } from "../machine/lock.js";
import { awaitOrphans } from "../machine/orphans.js";
import { currentOwner, isOwnerAlive } from "../machine/owner.js";
import { freeName } from "./names.js";
import type { SandboxRecord } from "./record.js";
import {
  type RecordPatch,
  readRecord,
  rememberedRecord,
  removeRecord,
  runtimeDirectories,
  updateRecord,
} from "./records.js";

/** Removes one resource, idempotently; throws if it is still there. It may also remove the directories next to the record. */
export type Remover = (
  resource: Resource,
  beside: readonly string[],
) => Promise<void> | Promise<PendingRemoval | undefined>;

/** Finds the remover of a backend's resources. */
export type RemoverOf = (backend: string) => Promise<Remover>;

/** The remover of a backend's resources. */
export function removerFor(backend: Backend, patience: number): RemoverOf {
  return async () => (resource, beside) => backend.removeResource(resource, { patience, beside });
}

/** Runs `work` while no other process can open or remove this sandbox. */
async function withRecordLock<T>(id: string, work: () => Promise<T>): Promise<T> {
  return await withLock(`record:${id}`, work);
}

/**
 * Removes everything a sandbox made, last first, then its record, if `mayRemove` approves the record as it is under the lock. Returns whether it
 * was removed.
 *
 * Each resource leaves the record once it is gone: a second run must not remove something new of the same name. `ended` settles when nothing runs
 * in the sandbox any more; nothing is removed before.
 */
export async function removeRecorded(
  id: string,
  mayRemove: (record: SandboxRecord) => boolean,
  removerOf: RemoverOf,
  ended?: Promise<void>,
): Promise<boolean> {
  return await withRecordLock(id, async () => {
    const written = await readRecord(id);
    const record = written ?? rememberedRecord(id);
    await ended;
    if (record === undefined || !mayRemove(record)) return false;
    const update = async (patch: RecordPatch): Promise<void> => {
      if (written !== undefined) await updateRecord(id, patch);
    };
    await awaitOrphansOf(record);
    // Without an owner, any process that gets the lock can continue where this one stops.
    const ownerless = { state: "removing", owner: undefined } as const;
    // A sandbox that is not kept counts as a leftover once its owner is dead, so it needs no such mark.
    if (record.state === "kept") await update(ownerless);
    let left = [...record.resources];
    const vanishing: Promise<void>[] = [];
    try {
      await failpoint("removal.marked");
      const removeResource = await removerOf(record.backend);
      const beside = runtimeDirectories(id);
      const going = new Set<Resource>();
      for (const resource of left.toReversed()) {
        const rest = await removeResource(resource, beside);
        await failpoint("removal.resource");
        if (typeof rest === "object") {
          vanishing.push(rest.gone);
          going.add(resource);
          continue;
        }
        left = left.filter((other) => other !== resource);
        // The last ones are removed with the record itself.
        if (left.some((other) => !going.has(other))) await update({ resources: left });
      }
      await Promise.all(vanishing);
      await failpoint("removal.emptied");
      // While the record is there, nobody else can take the name.
      if (record.name !== undefined) await freeName(record.name, id);
      await removeRecord(id);
    } catch (error) {
      await Promise.allSettled(vanishing);
      await update({ ...ownerless, resources: left }).catch(() => undefined);
      throw error;
    }
    return true;
  });
}

/** Makes this process the owner of a kept sandbox. Open elsewhere: `conflict`. Absent or not kept: `not_found`. */
export async function openKeptRecord(id: string): Promise<SandboxRecord> {
  return await withRecordLock(id, async () => {
    const record = await readRecord(id);
    if (record?.owner !== undefined && isOwnerAlive(record.owner) !== "dead") throw inUse(record);
    if (record === undefined || record.state !== "kept") {
      throw new SandboxError("not_found", `No kept sandbox with the id "${id}"`);
    }
    await awaitOrphansOf(record);
    return await updateRecord(id, { owner: currentOwner() });
  });
}

async function awaitOrphansOf({ owner }: SandboxRecord): Promise<void> {
  if (owner !== undefined && isOwnerAlive(owner) === "dead") await awaitOrphans(owner);
}

/** The error for a sandbox that a process has open. */
export function inUse(record: SandboxRecord): SandboxError {
  const pid = record.owner?.pid ?? "unknown";
  return new SandboxError("conflict", `Sandbox "${record.id}" is open in process ${pid}`, {
    retryable: false,
    hint: "end that process first, then try again",
  });
}
