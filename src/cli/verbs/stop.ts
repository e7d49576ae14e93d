import { stopRun } from "../../harness.js";
import { findRunId } from "../find-id.js";
import type { Invocation } from "../invocation.js";

/** `glovebox stop <run>`. */
export async function run({ operands, flags, screen }: Invocation): Promise<number> {
  const runId = await findRunId(operands[0] ?? "");
  const { status } = await screen.during(`stopping ${runId}`, () => stopRun(runId));
  if (flags.has("json")) await screen.printJson({ runId, status });
  else await screen.print(`${runId} ${status}\n`);
  return 0;
}
