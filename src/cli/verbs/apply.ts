import { applyRun } from "../../harness.js";
import { toInertLine } from "../../util/inert-text.js";
import { findRunId } from "../find-id.js";
import type { Invocation } from "../invocation.js";

/** `glovebox apply <run>`. */
export async function run({ operands, flags, screen }: Invocation): Promise<number> {
  const runId = await findRunId(operands[0] ?? "");
  const result = await screen.during(`applying ${runId}`, () => applyRun(runId, flags.text("repo")));
  if (flags.has("json")) await screen.printJson(result);
  else await screen.print(result.files.map((path) => `${toInertLine(path)}\n`).join(""));
  if (result.conflicts.length === 0) return 0;
  const names = result.conflicts.map(toInertLine).join(", ");
  await screen.printError(`there are conflicts in ${names}`, "resolve and git add them, or undo with git reset --hard");
  return 1;
}
