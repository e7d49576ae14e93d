import { SandboxError, withTypedErrors } from "../../contracts/errors.js";
import { findSandboxId, inUse, type Remover, removeRecorded, removerFor } from "../ledger.js";
import * as is from "../util/schema.js";
import {
  isHeld,
  labelsSchema,
  listRecorded,
  type ReapOptions,
  type ReapReport,
  reapRecords,
  referenceSchema,
  type SandboxInfo,
} from "./lifecycle.js";
import { loadBackend, loadBackends } from "./registry.js";
import { listUnknownRemotes, reapUnknownRemotes } from "./remote-sandboxes.js";
import { DEFAULT_OPERATION_TIMEOUT } from "./types.js";

export type { ReapOptions, ReapReport, SandboxInfo };

/** All sandboxes in the ledger, of this and of other processes, and those that services know by their labels. */
export async function listSandboxes(filter: SandboxFilter = {}): Promise<SandboxInfo[]> {
  is.check(filter, sandboxFilter, "filter");
  const known = await listRecorded();
  const all = [...known, ...(await listUnknownRemotes(new Set(known.map(({ id }) => id))))];
  const wanted = Object.entries(filter.labels ?? {});
  return all.filter(
    ({ name, labels = {} }) =>
      (filter.name === undefined || name === filter.name) &&
      wanted.every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value),
  );
}

/** Which sandboxes to list. Default: all. */
export interface SandboxFilter {
  /** Only the one with this name. */
  name?: string;
  /** Only those with all of these labels. */
  labels?: Readonly<Record<string, string>>;
}

const sandboxFilter: is.Schema<SandboxFilter> = is.object({ name: is.text, labels: labelsSchema });

/**
 * Removes what sandboxes of dead processes left behind, and kept sandboxes that have expired.
 *
 * Never touches a sandbox whose process is alive or can't be seen from here. What can't be removed stays in the ledger for the next call. Calls may
 * run in parallel.
 */
export async function reap(opts: ReapOptions = {}): Promise<ReapReport> {
  return await withTypedErrors("reap", async () => {
    const only = opts.backend === undefined ? {} : { backend: (await loadBackend(opts.backend)).name };
    const own = { ...opts, ...only };
    const records = await reapRecords(removerOf, own);
    if (opts.signal?.aborted === true) return records;
    const report = { ...records, ...(await sweepServices(own)) };
    await reapUnknownRemotes(report, own);
    if (opts.cache === undefined || opts.dryRun === true) return report;
    const cache: string[] = [];
    for (const { trimCache } of await loadBackends()) cache.push(...((await trimCache?.(opts.cache)) ?? []));
    return { ...report, cache };
  });
}

/** Removes a kept sandbox, or one that a dead process left, by its id or name. Open: `conflict`. Unknown: `not_found`. */
export async function removeSandbox(id: string): Promise<void> {
  const mayRemove: Parameters<typeof removeRecorded>[1] = (record) => {
    if (isHeld(record)) throw inUse(record);
    return true;
  };
  const isRemoved = await withTypedErrors("remove", async () => {
    is.check(id, referenceSchema, "id");
    const found = await findSandboxId(id);
    return found !== undefined && (await removeRecorded(found, mayRemove, removerOf));
  });
  if (!isRemoved) throw new SandboxError("not_found", `No sandbox with the id or name "${id}"`);
}

async function sweepServices({ backend, dryRun = false }: ReapOptions): Promise<Pick<ReapReport, "swept">> {
  const swept: string[] = [];
  for (const { sweep } of await loadBackends(backend)) {
    // Without the service, or without access to it, nothing was left there.
    swept.push(...((await sweep?.({ dryRun }).catch(ignoreAbsent)) ?? []));
  }
  return swept.length > 0 ? { swept } : {};
}

function ignoreAbsent(error: unknown): undefined {
  if (!(error instanceof SandboxError) || !["unavailable", "permission_denied"].includes(error.code)) throw error;
}

async function removerOf(name: string): Promise<Remover> {
  return await removerFor(await loadBackend(name), DEFAULT_OPERATION_TIMEOUT)(name);
}
