import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { syncDirectory } from "../atomic-file.js";
import { failpoint } from "../failpoint.js";
import { addResource } from "../ledger.js";
import { type SnapshotRecord, snapshotsDir, writeSnapshotRecord } from "../snapshot-record.js";
import { isAmong, writeArchive } from "../archive.js";
import type { InsideHead } from "./jailed-commit.js";
import { jailedPackOf, type LiveTree, ownsGit, scratchPath } from "./live-tree.js";
import { createSnapshot } from "./snapshot.js";
import type { Workspace } from "./workspace.js";

/** What a record of ours says beside the common fields. */
export interface LocalDetails {
  /** What the files belong to; they can only be restored there. */
  source: string;
  head?: InsideHead;
}

/** Where a snapshot of a sandbox can be restored: the same repository, the same directory of the user's, or any empty one. */
export function sourceOf({ kind, workDir, base }: Workspace): string {
  if (base !== undefined) return `repository:${base.repository.gitDir}`;
  return kind === "base-dir" ? `directory:${workDir}` : "empty";
}

const answering = new WeakSet<LiveTree["driver"]>();

/** Notes, once, that the sandbox may leave unfinished snapshots behind. */
export async function answerForSnapshots({ id, workspace, driver }: LiveTree): Promise<void> {
  if (answering.has(driver)) return;
  await addResource(id, { kind: "snapshots", sandbox: id, repo: workspace.base?.repository.gitDir ?? "" });
  answering.add(driver);
}

/** Saves a sandbox's files and commits for good, and gives the id under which they are restored. */
export async function saveSnapshot(tree: LiveTree): Promise<string> {
  const { id: sandboxId, workspace } = tree;
  await answerForSnapshots(tree);
  const draft = scratchPath(sandboxId, "archive");
  let kept = 0;
  try {
    const { ref, commit, head, gitDir, warnings } = await createSnapshot({
      ...(await jailedPackOf(tree, { withCommits: true })),
      async beside({ others }) {
        await rm(draft, { force: true });
        const wanted = ownsGit(workspace) ? [...others, ".git", ".git/"] : others;
        kept = wanted.length === 0 ? 0 : await archive(tree, draft, isAmong(wanted));
      },
    });
    const id = `${ref.slice("refs/glovebox/".length).replace("/", "-")}-${commit.slice(0, 8)}`;
    const place = join(snapshotsDir(), `${id}.tar`);
    if (kept > 0) await rename(draft, place);
    if (kept > 0) await syncDirectory(snapshotsDir());
    await failpoint("snapshot.archived");
    const repository = workspace.base?.repository;
    const details: LocalDetails = { source: sourceOf(workspace), ...(head && { head }) };
    const record: SnapshotRecord = {
      version: 1,
      id,
      sandboxId,
      backend: "local",
      createdAt: new Date().toISOString(),
      ...(repository && { repo: repository.topLevel ?? repository.gitDir }),
      gitDir,
      ref,
      commit,
      ...(kept > 0 && { archive: place }),
      details,
    };
    await writeSnapshotRecord(record);
    await failpoint("snapshot.recorded");
    for (const warning of warnings) tree.warn(warning);
    return id;
  } finally {
    await rm(draft, { force: true });
  }
}

async function archive({ driver }: LiveTree, path: string, isWanted: (name: string) => boolean): Promise<number> {
  return await writeArchive(driver.exportTree(driver.workDir), path, isWanted);
}
