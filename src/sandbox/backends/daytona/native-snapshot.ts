import { randomBytes } from "node:crypto";
import type { SnapshotRecord } from "../../../../contracts/backend.js";
import { SandboxError } from "../../../../contracts/errors.js";
import { addResource, dropResources, readSnapshotRecord, writeSnapshotRecord } from "../../../ledger.js";
import { isoTime } from "../../../util/iso-time.js";
import type { RemoteSandbox } from "./client.js";
import type { DaytonaDriver } from "./driver.js";
import { diagnose } from "./failure.js";
import type { Place } from "./guest-session.js";
import { type Account, BACKEND } from "./options.js";
import { type RemoteResource, remoteResource, removeResource } from "./remove.js";

const SECONDS = 600;

/** Saves the whole machine at the service; the snapshot outlives the sandbox. */
export async function takeNativeSnapshot(driver: DaytonaDriver, account: Account): Promise<string> {
  const id = `snapshot-${randomBytes(6).toString("hex")}`;
  const name = `glovebox-${id}`;
  const details = { ...remoteResource("daytona-snapshot", name, account), place: driver.place };
  await saveMachine(driver.remote, name);
  const createdAt = isoTime();
  await writeSnapshotRecord({ version: 1, id, sandboxId: driver.id, backend: BACKEND, createdAt, details });
  return id;
}

/** The name of a snapshot at the service. */
export async function findNativeSnapshot(id: string): Promise<string> {
  const { backend, details } = await readSnapshotRecord(id);
  const name = (details as { name?: unknown } | undefined)?.name;
  if (backend === BACKEND && typeof name === "string") return name;
  throw new SandboxError("not_found", `The snapshot ${JSON.stringify(id)} is not one of a Daytona machine`);
}

/** The machine that a snapshot is, and its directories. A commit of a repository is none. */
export function savedMachine({ id, commit, details }: SnapshotRecord): { snapshot: string; place: Place } {
  const { name, place } = (details ?? {}) as { name?: string; place?: Place };
  if (name !== undefined && place !== undefined) return { snapshot: name, place };
  throw new SandboxError("unsupported", `The daytona backend can't start a sandbox from snapshot "${id}"`, {
    hint:
      commit === undefined
        ? `an older version took it: open a sandbox and call restore("${id}")`
        : "a snapshot of a repository is a commit that only exists in its sandbox and the forks of it; push it, and open its branch",
  });
}

/** Removes a snapshot at the service. A commit is removed with its sandbox. */
export async function removeSnapshot({ details }: SnapshotRecord): Promise<void> {
  if (details !== undefined) await removeResource(details as Parameters<typeof removeResource>[0]);
}

/** Saves the machine while `work` runs, under a name that is recorded first. */
export async function withMachineCopy<T>(
  driver: DaytonaDriver,
  account: Account,
  work: (snapshot: string) => Promise<T>,
): Promise<T> {
  const name = `glovebox-fork-${randomBytes(8).toString("hex")}`;
  const resource = remoteResource("daytona-snapshot", name, account);
  await addResource(driver.id, resource);
  try {
    await saveMachine(driver.remote, name);
    return await work(name);
  } finally {
    await removeTemporary(driver.id, resource).catch((error: unknown) => {
      driver.onWarning?.(`The snapshot ${name} could not be deleted yet; reap will try again: ${String(error)}`);
    });
  }
}

/** Removes a snapshot of the service that a sandbox needed for a moment, then drops it from the record. */
async function removeTemporary(id: string, resource: RemoteResource): Promise<void> {
  await removeResource(resource);
  await dropResources(id, ({ name }) => name === resource.name);
}

async function saveMachine(remote: RemoteSandbox, name: string): Promise<void> {
  try {
    await remote.createSnapshot(name, SECONDS);
  } catch (error) {
    throw await diagnose(remote, error, "a snapshot of the machine");
  }
}
