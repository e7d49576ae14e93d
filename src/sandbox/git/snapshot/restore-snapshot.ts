import { createReadStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { SnapshotRecord } from "../../../../contracts/backend.js";
import { SandboxError } from "../../../../contracts/errors.js";
import { readSnapshotRecord } from "../../../ledger.js";
import { removeOwnTree } from "../../../machine/remove-tree.js";
import { packDirectory } from "../../../util/tar/tar-pack.js";
import { gitError } from "../host.js";
import { createJailedGit, fillStore, makeStore } from "../jailed.js";
import { type LiveTree, scratchPath, setSandboxHead } from "../live-tree.js";
import { INSIDE_OBJECTS, objectBinds, repositoryGit, resolveCommit, withRepositoryLock } from "../repository.js";
import { replaceFiles } from "./replace-files.js";
import { recordSnapshots } from "./save-snapshot.js";
import type { SnapshotDetails } from "./snapshot-details.js";

/** Restores the files of a snapshot, and removes all others. Reads our own stores only. */
export async function restoreSnapshot(tree: LiveTree, id: string): Promise<void> {
  const record = await readSnapshotRecord(id);
  const { gitDir, commit, details } = await checkRecord(tree, record);
  const out = scratchPath(tree.id, "restore");
  try {
    await mkdir(out, { mode: 0o700 });
    await checkOut(tree, gitDir, commit, out);
    const archives = [packDirectory(out), ...(record.archive === undefined ? [] : [createReadStream(record.archive)])];
    await replaceFiles(tree, archives, { keepGit: !tree.ownsGit });
  } finally {
    await removeOwnTree(out);
  }
  const { head } = details;
  if (head !== undefined) await holdCommit(tree, gitDir, head.sha);
  const isOwn = record.sandboxId === tree.id;
  const branch = tree.base?.branch;
  await setSandboxHead(tree, head && !isOwn && branch !== undefined ? { sha: head.sha, branch } : head);
}

/** Keeps a commit that the sandbox needs from `git gc`, as long as the sandbox exists. */
export async function holdCommit(tree: LiveTree, gitDir: string, sha: string): Promise<void> {
  await recordSnapshots(tree);
  const ref = `refs/glovebox/${tree.id}/held`;
  await withRepositoryLock(gitDir, () => repositoryGit(["update-ref", "--no-deref", ref, sha], gitDir));
}

async function checkRecord(
  { source }: LiveTree,
  { id, gitDir, ref, commit, details }: SnapshotRecord,
): Promise<{ gitDir: string; commit: string; details: SnapshotDetails }> {
  const local = details as SnapshotDetails | undefined;
  // The files of a user's directory belong to no other place: an empty sandbox can take them.
  const isFitting = local?.source === source || (source === "empty" && local?.source.startsWith("directory:") === true);
  if (local === undefined || !isFitting) {
    throw new SandboxError("conflict", `Snapshot "${id}" does not belong to what this sandbox works on`, {
      retryable: false,
      hint: local === undefined ? undefined : `It belongs to ${local.source}`,
    });
  }
  if (gitDir === undefined || ref === undefined || commit === undefined) {
    throw new SandboxError("tampered", `The record of snapshot "${id}" is not complete`);
  }
  if ((await resolveCommit(gitDir, ref)) !== commit) {
    throw new SandboxError("not_found", `Snapshot "${id}" is no longer in ${gitDir}: ${ref} is gone or was moved`);
  }
  return { gitDir, commit, details: local };
}

/** Writes the files of a commit to a directory of ours, in a jail, since the sandbox wrote their attributes. */
async function checkOut(tree: LiveTree, gitDir: string, commit: string, out: string): Promise<void> {
  const { id, base, signal } = tree;
  const store = scratchPath(id, "store");
  const objects = objectBinds(base?.repository ?? { objects: join(gitDir, "objects") });
  const git = createJailedGit({ store, tree: { source: out }, writable: true, objects, signal });
  try {
    await makeStore(store);
    await fillStore(store, base?.repository);
    const args = ["read-tree", "--reset", "-u", commit];
    const answer = await git(args, { env: { GIT_ALTERNATE_OBJECT_DIRECTORIES: INSIDE_OBJECTS } });
    if (answer.exitCode !== 0) throw gitError(args, { ...answer, stdout: "" });
  } finally {
    await git.close?.();
    await removeOwnTree(store);
  }
}
