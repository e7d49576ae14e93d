import type { Invocation } from "../invocation.js";
import { withKept } from "../kept-sandbox.js";
import { explain } from "./snapshots.js";

/** `glovebox restore <id> <snapshot>`. */
export async function run(invocation: Invocation): Promise<number> {
  const { operands, flags, screen } = invocation;
  const [id = "", snapshot = ""] = operands;
  await withKept(invocation, id, `restoring ${snapshot}`, (sandbox) =>
    sandbox.restore(snapshot).catch((error: unknown) => explain(error, snapshot)),
  );
  await (flags.has("json") ? screen.printJson({ sandbox: id, snapshot }) : screen.print(`${id}\n`));
  return 0;
}
