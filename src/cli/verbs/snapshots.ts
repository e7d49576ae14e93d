import { deleteSnapshot, listSnapshots } from "../../sandbox.js";
import { toInertLine } from "../../util/inert-text.js";
import { findSnapshotId } from "../find-id.js";
import type { Invocation } from "../invocation.js";
import { withNearestSnapshot } from "../kept-sandbox.js";
import { removeEach } from "../remove-each.js";
import { formatTable } from "../terminal.js";

/** `glovebox snapshots`: lists them, or deletes the named ones and stops at the first that can't be deleted. */
export async function run(invocation: Invocation): Promise<number> {
  const { flags, screen } = invocation;
  if (flags.has("delete"))
    return await deleteAll(await Promise.all(flags.texts("delete").map(findSnapshotId)), invocation);
  const snapshots = await listSnapshots();
  if (flags.has("json")) await screen.printJson(snapshots);
  else if (flags.has("quiet")) await screen.print(snapshots.map(({ id, name }) => `${name ?? id}\n`).join(""));
  else if (snapshots.length === 0) await screen.printNote("there are no snapshots");
  else {
    const rows = snapshots.map(({ id, name, sandboxId, createdAt, repo }) => [
      id,
      toInertLine(name ?? ""),
      sandboxId,
      toInertLine(createdAt),
      toInertLine(repo ?? ""),
    ]);
    const head = ["ID", "NAME", "SANDBOX", "CREATED", "REPOSITORY"].map(screen.style.bold);
    await screen.print(formatTable([head, ...rows]));
  }
  return 0;
}

async function deleteAll(ids: readonly string[], invocation: Invocation): Promise<number> {
  const remove = (id: string): Promise<void> =>
    deleteSnapshot(id).catch(async (error: unknown) => {
      throw await withNearestSnapshot(error, id);
    });
  const deleted = await removeEach(ids, invocation, remove);
  if (invocation.flags.has("json")) await invocation.screen.printJson({ deleted });
  return 0;
}
