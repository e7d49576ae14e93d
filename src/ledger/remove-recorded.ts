import type { Backend, Resource } from "../../contracts/backend.js";
import type { Vanishing } from "../../contracts/driver.js";
import { SandboxError } from "../../contracts/errors.js";
import { failpoint } from "../machine/failpoint.js";
import { withLock } from "../machine/lock.js";
import { awaitOrphans } from "../machine/orphans.js";
import { currentOwner, isOwnerAlive } from "../machine/owner.js";
import type { SandboxRecord } from "./record.js";
import {
  type RecordPatch,
  readRecord,
  rememberedRecord,
  removeRecord,
  runtimeDirectories,
  updateRecord,
} from "./records.js";

/** Removes one resource, idempotently; throws when it is still there. May remove the directories beside the record, too. */
export type Remover = (resource: Resource, beside: readonly string[]) => Promise<void> | Promise<Vanishing | undefined>;

/** Finds what removes the resources of a backend. */
export type RemoverOf = (backend: string) => Promise<Remover>;

/** How the resources of a backend's sandboxes are removed. */
export function removerFor(backend: Backend, patience: number): RemoverOf {
  return async () => (resource, beside) => backend.removeResource(resource, { patience, beside });
}

/** Runs something while no other process takes over or removes this sandbox. */
async function withRecordLock<T>(id: string, work: () => Promise<T>): Promise<T> {
  return await withLock(`record:${id}`, work);
}

/**
 * Removes everything a sandbox made, last first, then its record, provided that `mayRemove` says so of the record as it is
 * under the lock. Returns whether it was removed.
 *
 * Each resource leaves the record once it is gone: a second run must not meet something new of the same name. `ended` says that nothing runs in the
 * sandbox any more; nothing is removed before.
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
    // Without an owner, whoever gets the lock next may go on where this process stops.
    const letOthers = { state: "removing", owner: undefined } as const;
    // What was not kept is a leftover as soon as its owner is dead, so nobody has to be told that it goes.
    if (record.state === "kept") await update(letOthers);
    let left = [...record.resources];
    const vanishing: Promise<void>[] = [];
    try {
      await failpoint("removal.marked");
      const removeResource = await removerOf(record.backend);
      const beside = await runtimeDirectories(id);
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
        // The last ones leave with the record itself.
        if (left.some((other) => !going.has(other))) await update({ resources: left });
      }
      await Promise.all(vanishing);
      await failpoint("removal.emptied");
      await removeRecord(id);
    } catch (error) {
      await Promise.allSettled(vanishing);
      await update({ ...letOthers, resources: left }).catch(() => undefined);
      throw error;
    }
    return true;
  });
}

/** Makes this process the owner of a kept sandbox. In use elsewhere: `conflict`. Not there or not kept: `not_found`. */
export async function claimRecord(id: string): Promise<SandboxRecord> {
  return await withRecordLock(id, async () => {
    const record = await readRecord(id);
    if (record === undefined || record.state !== "kept") {
      throw new SandboxError("not_found", `No kept sandbox with the id "${id}"`);
    }
    if (record.owner !== undefined && isOwnerAlive(record.owner) !== "dead") throw inUse(record);
    await awaitOrphansOf(record);
    return await updateRecord(id, { owner: currentOwner() });
  });
}

async function awaitOrphansOf({ owner }: SandboxRecord): Promise<void> {
  if (owner !== undefined && isOwnerAlive(owner) === "dead") await awaitOrphans(owner);
}

/** The error for a sandbox that somebody has open. */
export function inUse(record: SandboxRecord): SandboxError {
  const pid = record.owner?.pid ?? "unknown";
  return new SandboxError("conflict", `Sandbox "${record.id}" is open in process ${pid}`, { retryable: false });
}
