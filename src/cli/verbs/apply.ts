import { applyRun, landRun } from "../../harness.js";
import { toInertLine } from "../../util/inert-text.js";
import { UsageError } from "../commands.js";
import { findRunId } from "../find-id.js";
import type { Invocation } from "../invocation.js";

/** `glovebox apply <run>`: into a working tree, or as a branch. */
export async function run(invocation: Invocation): Promise<number> {
  const { operands, flags, screen } = invocation;
  const runId = await findRunId(operands[0] ?? "");
  const branch = flags.text("branch");
  if (branch !== undefined) return await land(invocation, runId, branch);
  if (flags.has("expect")) throw new UsageError("--expect needs --branch", `glovebox apply ${runId} --branch <name>`);
  const result = await screen.during(`applying ${runId}`, () => applyRun(runId, flags.text("repo")));
  if (flags.has("json")) await screen.printJson(result);
  else await screen.print(result.files.map((path) => `${toInertLine(path)}\n`).join(""));
  if (result.conflicts.length === 0) return 0;
  const names = result.conflicts.map(toInertLine).join(", ");
  await screen.printError(`there are conflicts in ${names}`, "resolve and git add them, or undo with git reset --hard");
  return 1;
}

async function land({ flags, screen }: Invocation, runId: string, branch: string): Promise<number> {
  const [repo, expected] = [flags.text("repo"), flags.text("expect")];
  const options = { branch, ...(repo !== undefined && { repo }), ...(expected !== undefined && { expected }) };
  const result = await screen.during(`making ${branch}`, () => landRun(runId, options));
  if (flags.has("json")) await screen.printJson({ run: runId, ...result });
  else {
    await screen.print(`${branch}\n`);
    await screen.printNote(
      `commit ${result.commit.slice(0, 12)} with ${result.files.length} changed; git switch ${branch}`,
    );
  }
  return 0;
}
