import { randomBytes } from "node:crypto";
import type { SnapshotRecord } from "../../../../contracts/backend.js";
import { SandboxError } from "../../../../contracts/errors.js";
import { readSnapshotRecord, writeSnapshotRecord } from "../../../ledger.js";
import { failpoint } from "../../../machine/failpoint.js";
import { isoTime } from "../../../util/iso-time.js";
import { otherPlace } from "../../lifecycle.js";
import { toVercelError } from "./failure.js";
import { Machine } from "./machine.js";
import { createMachine, type MachineSource, RefusedMachine } from "./machines.js";
import { patiently } from "./patience.js";
import type { Reopen, VercelPlan } from "./plan.js";
import { removeMachine } from "./removal.js";
import { type Origin, repoOf, sourceOf } from "./repository.js";

/** How the ledger names a machine. */
export interface MachineResource {
  readonly kind: "vercel-machine";
  readonly name: string;
  readonly teamId: string;
  readonly projectId: string;
}

/**
 * Makes a machine for a sandbox. It is recorded before it is requested, and dropped from the record if it could not be made.
 *
 * `patience` is how long to wait if the service asks for it: an existing sandbox waits as long as its calls may take, one that is being opened does
 * not.
 */
export async function nextMachine(
  plan: VercelPlan,
  patience: number,
  source?: MachineSource,
  persistent: boolean = plan.entry.keep,
): Promise<Machine> {
  const { client, settings, entry } = plan;
  const { id, signal } = entry;
  const { teamId, projectId } = client.access;
  const name = `${id}-${randomBytes(4).toString("hex")}`;
  const resource: MachineResource = { kind: "vercel-machine", name, teamId, projectId };
  await entry.record({ ...resource });
  const { expiresAt } = entry;
  const made = { name, owner: id, persistent, signal, patience, expiresAt, ...(source !== undefined && { source }) };
  try {
    const { sandbox, timeout } = await createMachine(client, settings, made);
    await failpoint("create.started");
    const warn = (message: string): void => entry.warn(message);
    const { workDir } = settings;
    const isNew = source?.type !== "snapshot";
    return await Machine.start(sandbox, { timeout, workDir, isNew, patience, warn, signal, expiresAt });
  } catch (error) {
    const isRefused = error instanceof RefusedMachine;
    // What can't be removed now stays in the ledger.
    const isGone = isRefused || (await removeMachine(client, name, patience).then(...SETTLED));
    if (isGone) await forget(plan, name);
    throw isRefused ? error.reason : error;
  }
}

const SETTLED = [() => true, () => false] as const;

async function forget({ entry }: VercelPlan, name: string): Promise<void> {
  await entry.forget((resource) => resource["name"] === name);
}

/** Saves what a later process needs to reopen a kept sandbox. */
export async function savePlan(
  { client, settings, origin, entry }: VercelPlan,
  { sandbox: { name } }: Machine,
): Promise<void> {
  const { teamId, projectId } = client.access;
  await entry.savePlan({ name, teamId, projectId, settings, ...(origin && { origin }) } satisfies Reopen);
}

/** Removes the machine of this name, which another one has replaced. If that fails, it is tried again at the end. */
export async function removeOld(plan: VercelPlan, name: string, next: Machine): Promise<void> {
  await savePlan(plan, next);
  try {
    await removeMachine(plan.client, name, plan.patience);
    await forget(plan, name);
  } catch (error) {
    plan.entry.warn(`the machine ${name} could not be removed yet: ${(error as Error).message}`);
  }
}

/** Removes earlier machines of a kept sandbox that could not be removed before. */
export async function removeReplaced(plan: VercelPlan, current: Machine): Promise<void> {
  for (const { kind, name } of plan.entry.resources) {
    if (kind !== "vercel-machine" || typeof name !== "string" || name === current.sandbox.name) continue;
    await removeOld(plan, name, current);
  }
}

/** Stops a machine for a snapshot of it. Its processes end; running calls get the reason. */
export async function stopForSnapshot({ settings, patience }: VercelPlan, machine: Machine): Promise<string> {
  const { snapshotExpiration: expiration } = settings;
  try {
    const { snapshotId } = await patiently(patience, () =>
      machine.session.snapshot(expiration === undefined ? {} : { expiration }),
    );
    await machine.close(new SandboxError("backend_lost", "The machine was stopped to take a snapshot of its files"));
    return snapshotId;
  } catch (error) {
    throw toVercelError(error, "snapshot");
  }
}

/** Saves the files of a machine permanently, and continues with them in another machine. */
export async function saveFiles(plan: VercelPlan, machine: Machine): Promise<{ id: string; next: Machine }> {
  const { teamId, projectId } = plan.client.access;
  const snapshotId = await stopForSnapshot(plan, machine);
  const id = `vercel-${randomBytes(8).toString("hex")}`;
  await writeSnapshotRecord({
    version: 1,
    id,
    sandboxId: plan.entry.id,
    backend: "vercel",
    createdAt: isoTime(),
    ...(plan.origin && { repo: repoOf(plan.origin) }),
    details: {
      ...{ snapshotId, teamId, projectId, source: sourceOf(plan.origin), workDir: machine.workDir },
      ...(plan.origin && { origin: plan.origin }),
    } satisfies Details,
  });
  try {
    const next = await nextMachine(plan, plan.patience, { type: "snapshot", snapshotId });
    await removeOld(plan, machine.sandbox.name, next);
    return { id, next };
  } catch (error) {
    throw new SandboxError(
      "backend_lost",
      `The files are saved as ${id}, but no new machine could be started with them`,
      {
        cause: error,
        hint: `restore("${id}") in another sandbox`,
      },
    );
  }
}

/** Makes a machine with the files of a snapshot, and removes the previous one. */
export async function restoreFiles(plan: VercelPlan, machine: Machine, id: string): Promise<Machine> {
  const record = await readSnapshotRecord(id);
  const { snapshotId, teamId, projectId, source, workDir = machine.workDir } = detailsOf(record);
  if (workDir !== machine.workDir) throw otherPlace(id, workDir);
  if (plan.origin !== undefined && source !== undefined && source !== sourceOf(plan.origin)) {
    throw new SandboxError("conflict", `The snapshot ${id} belongs to another repository`, { retryable: false });
  }
  assertProject(plan, { id, teamId, projectId });
  const next = await nextMachine(plan, plan.patience, { type: "snapshot", snapshotId }).catch((cause: unknown) => {
    throw withoutFiles(cause, id);
  });
  await machine.close();
  await removeOld(plan, machine.sandbox.name, next);
  return next;
}

/** Refuses a snapshot of another project, whose files the service would not give. */
export function assertProject(
  { client: { access } }: VercelPlan,
  { id, teamId, projectId }: Pick<Details, "teamId" | "projectId"> & { readonly id: string },
): void {
  if (teamId === access.teamId && projectId === access.projectId) return;
  throw new SandboxError("conflict", `The snapshot ${id} belongs to another project`, { retryable: false });
}

/** The error for a snapshot that the service has deleted. */
export function withoutFiles(cause: unknown, id: string): unknown {
  if (!(cause instanceof SandboxError) || cause.code !== "not_found") return cause;
  const { hint } = cause;
  return new SandboxError("not_found", `The service no longer has the files of the snapshot ${id}`, { cause, hint });
}

/** What the record of a snapshot says about its place and its source; older ones lack the source, the origin or the work directory. */
interface Details {
  readonly snapshotId: string;
  readonly teamId: string;
  readonly projectId: string;
  readonly source?: string;
  readonly workDir?: string;
  readonly origin?: Origin;
}

/** Reads the details of a snapshot's record; one of another backend is `conflict`. */
export function detailsOf(record: SnapshotRecord): Details {
  if (record.backend !== "vercel") {
    throw new SandboxError("conflict", `The snapshot ${record.id} belongs to the backend ${record.backend}`, {
      retryable: false,
    });
  }
  return record.details as unknown as Details;
}
