import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { SnapshotRecord } from "../../../../contracts/backend.js";
import { addResource, snapshotsDir, writeSnapshotRecord } from "../../../ledger.js";
import { syncPath } from "../../../machine/atomic-file.js";
import { failpoint } from "../../../machine/failpoint.js";
import { isoTime } from "../../../util/iso-time.js";
import { commitOptionsOf } from "../commit.js";
import { trustHead } from "../fast-commit.js";
import { type LiveTree, scratchPath } from "../live-tree.js";
import { isAmong, writeArchive } from "./archive.js";
import { createSnapshot } from "./create-snapshot.js";
import type { SnapshotDetails } from "./snapshot-details.js";

const answering = new WeakSet<LiveTree["driver"]>();

/** Adds to the ledger, once, that the sandbox may leave unfinished snapshots. */
export async function recordSnapshots({ id, base, driver }: LiveTree): Promise<void> {
  if (answering.has(driver)) return;
  await addResource(id, { kind: "snapshots", sandbox: id, repo: base?.repository.gitDir ?? "" });
  answering.add(driver);
}

/** Saves a sandbox's files and commits, and returns the id to restore them by. */
export async function saveSnapshot(tree: LiveTree): Promise<string> {
  const { id: sandboxId, backend, source } = tree;
  const look = tree.look();
  await recordSnapshots(tree);
  const draft = scratchPath(sandboxId, "archive");
  let kept = 0;
  try {
    const { ref, commit, head, gitDir, warnings } = await createSnapshot({
      ...(await commitOptionsOf(tree, { withCommits: true, look, isOneOfMany: true, isExact: true })),
      withOthers: true,
      isDurable: true,
      nestedNote: "saved beside the commit, with the ignored files",
      async beside({ others }) {
        const wanted = tree.ownsGit ? [...others, ".git", ".git/"] : others;
        kept = 0;
        if (wanted.length === 0) return;
        await rm(draft, { force: true });
        kept = await writeArchive(look.tar(), draft, isAmong(wanted));
      },
    });
    if (tree.base !== undefined && head !== undefined) trustHead(tree.base, head, { ref, commit });
    const id = `${ref.slice("refs/glovebox/".length).replace("/", "-")}-${commit.slice(0, 8)}`;
    const place = join(snapshotsDir(), `${id}.tar`);
    if (kept > 0) await rename(draft, place);
    if (kept > 0) await syncPath(snapshotsDir());
    await failpoint("snapshot.archived");
    const repository = tree.base?.repository;
    const details: SnapshotDetails = { source, ...(head && { head }), ...(tree.base && { base: tree.base.sha }) };
    const record: SnapshotRecord = {
      version: 1,
      id,
      sandboxId,
      backend,
      createdAt: isoTime(),
      ...(repository && { repo: repository.url ?? repository.topLevel ?? repository.gitDir }),
      ...(tree.place !== undefined && { workDir: tree.place }),
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
