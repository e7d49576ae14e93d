import { SandboxError, withTypedErrors } from "../../contracts/errors.js";
import { dismantle, inUse, type Remover } from "../ledger.js";
import {
  isHeld,
  listSandboxes as listKnown,
  type ReapOptions,
  type ReapReport,
  reapRecords,
  type SandboxInfo,
} from "./reap-records.js";
import { loadBackend } from "./registry.js";
import { listUnknownRemotes, reapUnknownRemotes } from "./remote-sandboxes.js";

export type { ReapOptions, ReapReport, SandboxInfo };

/** Every sandbox that the ledger knows, of this and of other processes, and those that services know by their labels. */
export async function listSandboxes(): Promise<SandboxInfo[]> {
  const known = await listKnown();
  return [...known, ...(await listUnknownRemotes(new Set(known.map(({ id }) => id))))];
}

/**
 * Removes what sandboxes of dead processes left behind, and kept ones whose time is over.
 *
 * Never touches what a live process has open, or one that cannot be seen from here. What could not be removed stays in
 * the ledger, and is tried again by the next call. Any number may run at once.
 */
export async function reap(opts: ReapOptions = {}): Promise<ReapReport> {
  return await withTypedErrors("reap", async () => {
    if (opts.backend !== undefined) await loadBackend(opts.backend);
    const records = await reapRecords(removerOf, opts);
    if (opts.signal?.aborted === true) return records;
    const report = { ...records, ...(await sweepServices(opts)) };
    await reapUnknownRemotes(report, opts);
    if (opts.cache === undefined || opts.dryRun === true) return report;
    const { trimCache } = await loadBackend("local");
    return { ...report, cache: (await trimCache?.(opts.cache)) ?? [] };
  });
}

/** Removes a kept sandbox, or one that a dead process left. In use: `conflict`. Unknown: `not_found`. */
export async function removeSandbox(id: string): Promise<void> {
  const mayRemove: Parameters<typeof dismantle>[1] = (record) => {
    if (isHeld(record)) throw inUse(record);
    return true;
  };
  if (!(await withTypedErrors("remove", () => dismantle(id, mayRemove, removerOf))))
    throw new SandboxError("not_found", `No sandbox with the id "${id}"`);
}

/** Backends whose things are elsewhere than the ledger, and outlive it. */
const SWEPT = ["docker"];

async function sweepServices({ backend, dryRun = false }: ReapOptions): Promise<Pick<ReapReport, "swept">> {
  const swept: string[] = [];
  for (const name of SWEPT.filter((each) => (backend ?? each) === each)) {
    const { sweep } = await loadBackend(name);
    // Who has no such service, or may not use it, has left nothing with it.
    swept.push(...((await sweep?.({ dryRun }).catch(ignoreAbsent)) ?? []));
  }
  return swept.length > 0 ? { swept } : {};
}

function ignoreAbsent(error: unknown): undefined {
  if (!(error instanceof SandboxError) || !["unavailable", "permission_denied"].includes(error.code)) throw error;
}

async function removerOf(backend: string): Promise<Remover> {
  const { removeResource } = await loadBackend(backend);
  if (removeResource !== undefined) return removeResource;
  throw new SandboxError("unsupported", `The backend "${backend}" cannot remove what it made`);
}
