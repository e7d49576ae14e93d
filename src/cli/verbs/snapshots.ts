import { deleteSnapshot, listSnapshots } from "../../sandbox.js";
import { toInertLine } from "../../util/inert-text.js";
import type { Invocation } from "../invocation.js";
import { nearestHint, withHint } from "../kept-sandbox.js";
import { removeEach } from "../remove-each.js";
import { formatTable } from "../terminal.js";

/** `glovebox snapshots`: lists them, or deletes the named ones and stops at the first that can't be deleted. */
export async function run(invocation: Invocation): Promise<number> {
  const { flags, screen } = invocation;
  if (flags.has("delete")) return await deleteAll(flags.texts("delete"), invocation);
  const snapshots = await listSnapshots();
  if (flags.has("json")) await screen.printJson(snapshots);
  else if (flags.has("quiet")) await screen.print(snapshots.map(({ id }) => `${id}\n`).join(""));
  else if (snapshots.length === 0) await screen.printNote("there are no snapshots");
  else {
    const rows = snapshots.map(({ id, sandboxId, createdAt, repo }) => [
      id,
      sandboxId,
      toInertLine(createdAt),
      toInertLine(repo ?? ""),
    ]);
    const head = ["ID", "SANDBOX", "CREATED", "REPOSITORY"].map(screen.style.bold);
    await screen.print(formatTable([head, ...rows]));
  }
  return 0;
}

async function deleteAll(ids: readonly string[], invocation: Invocation): Promise<number> {
  const remove = (id: string): Promise<void> => deleteSnapshot(id).catch((error: unknown) => explain(error, id));
  const deleted = await removeEach(ids, invocation, remove);
  if (invocation.flags.has("json")) await invocation.screen.printJson({ deleted });
  return 0;
}

/** Rethrows an error; if the snapshot does not exist, suggests the nearest id. */
export async function explain(error: unknown, id: string): Promise<never> {
  const ids = (await listSnapshots()).map((snapshot) => snapshot.id);
  throw withHint(error, nearestHint(id, ids, "glovebox snapshots lists the ids"));
}
