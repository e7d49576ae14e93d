import { readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SnapshotRecord } from "../../../../contracts/backend.js";
import { SandboxError } from "../../../../contracts/errors.js";
import { readRecord, readSnapshotRecords, snapshotIds, snapshotsDir } from "../../../ledger.js";
import { removeTree } from "../../../machine/remove-tree.js";
import { assertSandboxId } from "../../../machine/sandbox-id.js";
import {
  removeStaleRefLocks,
  repositoryExists,
  repositoryGit,
  resolveCommit,
  withRepositoryLock,
} from "../repository.js";
import { ownRepository } from "./create-snapshot.js";

/** Removes the ref and the archive of a snapshot. Its objects go with the repository's next `git gc`. */
export async function removeSnapshot({ id, sandboxId, gitDir, ref, commit, archive }: SnapshotRecord): Promise<void> {
  if (gitDir === undefined || ref === undefined || commit === undefined) return;
  if (
    !ref.startsWith(`refs/glovebox/${sandboxId}/`) ||
    (archive !== undefined && dirname(archive) !== snapshotsDir())
  ) {
    throw new SandboxError("tampered", `The record of snapshot "${id}" names what is not a snapshot`);
  }
  if (archive !== undefined) await rm(archive, { force: true });
  if (!(await repositoryExists(gitDir))) return;
  await withRepositoryLock(gitDir, async () => {
    // A ref that somebody moved is not ours any more.
    if ((await resolveCommit(gitDir, ref)) === commit) await removeRefLocked(gitDir, ref, commit);
  });
  if (gitDir !== ownRepository(sandboxId)) return;
  const isUsed = (await readSnapshotRecords()).some((other) => other.id !== id && other.gitDir === gitDir);
  if (!isUsed && (await readRecord(sandboxId)) === undefined) await removeTree(gitDir);
}

/** Removes what is left of a sandbox's unfinished snapshots; finished ones stay. Idempotent. */
export async function removeUnfinishedSnapshots(sandboxId: string, repo: string | undefined): Promise<void> {
  assertSandboxId(sandboxId);
  const finished = await snapshotIds();
  const known = await readSnapshotRecords();
  for (const name of await readdir(snapshotsDir())) {
    if (!name.startsWith(`${sandboxId}-`) || name.endsWith(".json")) continue;
    const isArchive = name.endsWith(".tar") && finished.includes(name.slice(0, -".tar".length));
    if (!isArchive) await rm(join(snapshotsDir(), name), { force: true });
  }
  const gitDir = repo ?? ownRepository(sandboxId);
  const isKept = (ref: string): boolean =>
    known.some((record) => record.gitDir === gitDir && record.ref === ref) ||
    // A damaged record has no ref; the id of the snapshot names it.
    finished.some(
      (id) => !known.some((record) => record.id === id) && id.startsWith(`${ref.split("/").slice(2).join("-")}-`),
    );
  if (!(await repositoryExists(gitDir))) return;
  const left = await withRepositoryLock(gitDir, async () => {
    await removeStaleRefLocks(gitDir, `refs/glovebox/${sandboxId}/`);
    const format = "--format=%(objectname) %(refname)";
    const answer = await repositoryGit(["for-each-ref", format, `refs/glovebox/${sandboxId}/`], gitDir);
    const refs = answer
      .split("\n")
      .filter(Boolean)
      .map((line) => line.split(" ") as [string, string]);
    for (const [sha, ref] of refs) if (!isKept(ref)) await removeRefLocked(gitDir, ref, sha);
    return refs.filter(([, ref]) => isKept(ref)).length;
  });
  if (repo === undefined && left === 0) await removeTree(gitDir);
}

/** Removes a ref if it is still at the commit. */
export async function removeRef(gitDir: string, ref: string, sha: string): Promise<void> {
  await withRepositoryLock(gitDir, () => removeRefLocked(gitDir, ref, sha));
}

/** As `removeRef`, for the holder of the repository's lock. */
async function removeRefLocked(gitDir: string, ref: string, sha: string): Promise<void> {
  await repositoryGit(["update-ref", "--no-deref", "-d", ref, sha], gitDir);
}
