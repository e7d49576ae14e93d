import { randomBytes } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { SandboxEntry, SnapshotRecord } from "../../../../contracts/backend.js";
import { SandboxError } from "../../../../contracts/errors.js";
import { readSnapshotRecord, snapshotsDir, writeSnapshotRecord } from "../../../ledger.js";
import { failpoint } from "../../../machine/failpoint.js";
import { isoTime } from "../../../util/iso-time.js";
import { replaceFiles } from "../../git.js";
import type { KubernetesDriver } from "./driver.js";
import type { KubernetesPlan } from "./plan.js";

/** What only this backend knows about a snapshot: what a sandbox that starts from it needs. */
export interface ArchiveDetails extends Pick<KubernetesPlan, "source" | "base"> {
  readonly image: string;
}

/** Saves the files of a sandbox to an archive on this machine, and records it. */
export async function saveArchive(
  driver: KubernetesDriver,
  entry: SandboxEntry,
  { source, base, pod }: KubernetesPlan,
): Promise<SnapshotRecord> {
  const id = `kubernetes-${entry.id}-${randomBytes(4).toString("hex")}`;
  const archive = join(snapshotsDir(), `${id}.tar`);
  await entry.record({ kind: "archive", path: archive, snapshot: id });
  await writeFiles(driver, archive);
  await failpoint("snapshot.archived");
  const details: ArchiveDetails = { source, image: pod.image, ...(base && { base }) };
  const record: SnapshotRecord = {
    version: 1,
    id,
    sandboxId: entry.id,
    backend: "kubernetes",
    createdAt: isoTime(),
    ...(base && { repo: base.repository.url ?? base.repository.topLevel ?? base.repository.gitDir }),
    workDir: pod.workDir,
    archive,
    details,
  };
  await writeSnapshotRecord(record);
  await failpoint("snapshot.recorded");
  await entry.forget((each) => each["snapshot"] === id);
  return record;
}

/** Gives a sandbox the files of a snapshot. */
export async function restoreArchive(driver: KubernetesDriver, { source }: KubernetesPlan, id: string): Promise<void> {
  const record = await readSnapshotRecord(id);
  const { backend, archive, details } = record;
  if (backend !== "kubernetes" || archive === undefined || (details as ArchiveDetails).source !== source) {
    throw new SandboxError("conflict", `The snapshot "${id}" is of another backend or source`, { retryable: false });
  }
  await fillFrom(driver, archive);
}

/** Removes the archive of a snapshot. */
export async function removeArchive({ archive }: SnapshotRecord): Promise<void> {
  if (archive !== undefined) await rm(archive, { force: true });
}

/** Writes the files of a sandbox, as they are at one moment, to a new file. */
export async function writeFiles(driver: KubernetesDriver, path: string): Promise<void> {
  await driver.frozen(() =>
    pipeline(driver.exportTree(driver.workDir), createWriteStream(path, { mode: 0o600, flags: "wx", flush: true })),
  );
}

/** Replaces the files of a sandbox by those of an archive. */
export async function fillFrom(driver: KubernetesDriver, archive: string): Promise<void> {
  await replaceFiles({ driver }, [createReadStream(archive)], { keepGit: false });
}
