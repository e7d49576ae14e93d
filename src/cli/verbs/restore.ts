import { findSandboxId, findSnapshotId } from "../find-id.js";
import type { Invocation } from "../invocation.js";
import { withKept, withNearestSnapshot } from "../kept-sandbox.js";

/** `glovebox restore <id> <snapshot>`. */
export async function run(invocation: Invocation): Promise<number> {
  const { operands, flags, screen } = invocation;
  const [given = "", named = ""] = operands;
  const [id, snapshot] = [await findSandboxId(given), await findSnapshotId(named)];
  await withKept(invocation, id, `restoring ${snapshot}`, (sandbox) =>
    sandbox.restore(snapshot).catch(async (error: unknown) => {
      throw await withNearestSnapshot(error, snapshot);
    }),
  );
  await (flags.has("json") ? screen.printJson({ sandbox: id, snapshot }) : screen.print(`${id}\n`));
  return 0;
}
