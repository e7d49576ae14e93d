import type { Backend } from "../../../contracts/backend.js";
import { SandboxError, toSandboxError, withTypedErrors } from "../../../contracts/errors.js";
import type { SandboxOptions } from "../../../contracts/sandbox.js";
import type { SandboxEvent } from "../../../contracts/types.js";
import {
  listRecords,
  type RecordState,
  type RemoverOf,
  readRecord,
  removeRecorded,
  removerFor,
  type SandboxRecord,
  sweepLedger,
  sweepNames,
} from "../../ledger.js";
import { failpoint } from "../../machine/failpoint.js";
import { sweepStaleLocks } from "../../machine/lock.js";
import { isOwnerAlive } from "../../machine/owner.js";
import { isSandboxId } from "../../machine/sandbox-id.js";
import { isoTime } from "../../util/iso-time.js";
import { sweepRepositoryLocks } from "../git.js";

/** One sandbox of the ledger. What a damaged record doesn't say is absent. */
export interface SandboxInfo {
  id: string;
  /** Absent: none. */
  name?: string;
  /** Absent: none. */
  labels?: Readonly<Record<string, string>>;
  state: RecordState | "damaged";
  backend?: string;
  /** Inside. */
  workDir?: string;
  /** Where the files of a kept sandbox are on this machine. Absent: nowhere, or not known. */
  hostDir?: string;
  /** ISO 8601. */
  createdAt?: string;
  /** ISO 8601. Absent: never. */
  expiresAt?: string;
  /** Whether a process has it open, here or where it can't be seen from here. */
  alive: boolean;
}

/** What `reap` did. Every sandbox of the ledger is in one of the three lists. */
export interface ReapReport {
  removed: string[];
  kept: string[];
  failed: { id: string; error: SandboxError }[];
  /** What no record named and was removed from a service, for example a container. Absent: nothing. */
  swept?: string[];
  /** What was removed from the caches, if requested. */
  cache?: string[];
}

/** Options of `reap`. */
export interface ReapOptions {
  onEvent?(event: SandboxEvent): void;
  /** Only report what would be removed. Default false. */
  dryRun?: boolean;
  /** Also trim the caches to this many bytes; what is in use stays. Default: leave them alone. */
  cache?: number;
  /** Only sandboxes of this backend. Default: all. */
  backend?: string;
  /** Stops after the sandbox that is being removed. The remaining ones are reported as kept. */
  signal?: AbortSignal;
}

/** All sandboxes in the ledger, of this and of other processes. */
export async function listSandboxes(): Promise<SandboxInfo[]> {
  const entries = await withTypedErrors("list", listRecords);
  return entries.map((entry) => {
    if (!("record" in entry)) return { id: entry.id, state: "damaged", alive: false };
    const { id, state, backend, workDir, hostDir, createdAt, expiresAt, name, labels } = entry.record;
    const more = {
      ...(name && { name }),
      ...(labels && { labels }),
      ...(hostDir !== undefined && { hostDir }),
      ...(expiresAt && { expiresAt }),
    };
    return { id, state, backend, workDir, createdAt, ...more, alive: isHeld(entry.record) };
  });
}

/** Removes what sandboxes of dead processes left behind, and kept sandboxes that have expired. See `reap`. */
export async function reapRecords(removerOf: RemoverOf, opts: ReapOptions = {}): Promise<ReapReport> {
  const report: ReapReport = { removed: [], kept: [], failed: [] };
  const entries = await listRecords();
  await failpoint("reap.listed");
  for (const entry of entries) {
    const { id } = entry;
    if (!("record" in entry)) {
      const error = new SandboxError("tampered", `The record of sandbox "${id}" is damaged: ${entry.damaged}`);
      report.failed.push({ id, error });
    } else if (
      !isLeftOver(entry.record) ||
      (opts.backend ?? entry.record.backend) !== entry.record.backend ||
      opts.signal?.aborted === true
    ) {
      report.kept.push(id);
    } else if (opts.dryRun === true) {
      report.removed.push(id);
    } else {
      await reapOne(entry.record, removerOf, report, opts);
    }
  }
  await failpoint("reap.removed");
  if (opts.dryRun !== true) {
    await sweepLedger();
    await sweepNames(new Set(entries.flatMap((entry) => ("record" in entry ? (entry.record.name ?? []) : []))));
    await sweepRepositoryLocks();
    await sweepStaleLocks();
  }
  return report;
}

async function reapOne(
  { id, backend }: SandboxRecord,
  removerOf: RemoverOf,
  report: ReapReport,
  opts: ReapOptions,
): Promise<void> {
  const emit = (type: "teardown" | "leak", message: string): void =>
    opts.onEvent?.({ type, sandboxId: id, backend, message, time: isoTime() });
  try {
    // Another process may have been faster; then it is gone, but not removed by us.
    if (!(await removeRecorded(id, isLeftOver, removerOf))) return;
    report.removed.push(id);
    emit("teardown", `Removed what was left of sandbox ${id}`);
  } catch (error) {
    const failure = toSandboxError(error, { backend, operation: "reap" });
    report.failed.push({ id, error: failure });
    emit("leak", `Could not remove sandbox ${id}: ${failure.message}`);
  }
}

/** Refuses to reopen a sandbox whose ttl is over, and removes it. */
export async function refuseExpired(backend: Backend, id: string): Promise<void> {
  const record = isSandboxId(id) ? await readRecord(id) : undefined;
  if (record === undefined || record.backend !== backend.name || isHeld(record) || !isExpired(record)) return;
  await removeRecorded(id, isLeftOver, removerFor(backend, 0)).catch(() => undefined);
  throw new SandboxError("not_found", `Sandbox "${id}" was removed: its ttl ended at ${record.expiresAt}`, {
    hint: "reopening does not extend a ttl; open another one",
  });
}

function isExpired({ expiresAt }: SandboxRecord): boolean {
  return expiresAt !== undefined && Date.parse(expiresAt) <= Date.now();
}

/** Whether nobody needs the sandbox any more: `reap` removes it. */
export function isLeftOver(record: SandboxRecord): boolean {
  if (isHeld(record)) return false;
  if (record.state === "kept") return isExpired(record);
  return record.owner !== undefined || record.state === "removing";
}

/** Whether a process has the sandbox open, here or where it can't be seen from here. */
export function isHeld(record: SandboxRecord): boolean {
  return record.owner !== undefined && isOwnerAlive(record.owner) !== "dead";
}

const reaped = new Map<string, Promise<unknown>>();

/** Removes what dead processes left, the first time this process opens a sandbox of a backend. */
export async function reapAtStart(backend: Backend, options: SandboxOptions): Promise<void> {
  const { name } = backend;
  // A failed removal is no reason to stop: the sandbox stays in the ledger, and `listSandboxes` shows it.
  const reaping =
    reaped.get(name) ??
    Promise.allSettled([
      // Don't wait for a busy service here.
      reapRecords(removerFor(backend, 0), { backend: name }),
      backend.sweep?.({ options }),
    ]);
  reaped.set(name, reaping);
  await reaping;
}
