import { findRunDirectory, listRuns, type RunSummary, readReport, resumeRun } from "../../harness.js";
import { toInertLine } from "../../util/inert-text.js";
import { UsageError } from "../commands.js";
import { findRunId } from "../find-id.js";
import type { Invocation } from "../invocation.js";
import { limitsOf } from "../runs/run-options.js";
import { tokenFor } from "../token.js";
import { environmentFailure, followRun } from "./run-view/follow-run.js";

/** `glovebox resume [run]`. */
export async function run(invocation: Invocation): Promise<number> {
  const { flags, operands } = invocation;
  const [from, given] = [flags.text("from"), operands[0]];
  try {
    const limits = limitsOf(flags);
    const runId = given === undefined ? await onlyCandidate(invocation) : await findRunId(given);
    const repo = (await readReport(await findRunDirectory(runId)))?.repo;
    const options = {
      runId,
      trust: flags.has("trust"),
      ...(from !== undefined && { from }),
      ...tokenFor(repo ?? ".", process.env),
      ...(Object.keys(limits).length > 0 && { limits }),
    };
    return await followRun(invocation, (more) => resumeRun({ ...options, ...more }));
  } catch (error) {
    return await environmentFailure(invocation, error, "resume");
  }
}

const MOST_SHOWN = 5;

/** The one run that there is something left to do for. */
async function onlyCandidate({ screen }: Invocation): Promise<string> {
  const isOpen = ({ state }: RunSummary): boolean =>
    state === "interrupted" || state === "failed" || state === "limit" || state === "cancelled" || state === "error";
  const open = (await listRuns()).filter(isOpen);
  const [first] = open;
  if (first === undefined) throw new UsageError("there is no run to continue", "glovebox runs lists them");
  if (open.length === 1) {
    await screen.printNote(`continuing run ${first.runId} (${first.state}): ${(first.intent ?? "").slice(0, 60)}`);
    return first.runId;
  }
  const shown = open.slice(0, MOST_SHOWN).map(({ runId, state }) => `${runId} (${state})`);
  throw new UsageError(
    `${open.length} runs could be continued`,
    `name one: ${toInertLine(shown.join(", "))}${open.length > MOST_SHOWN ? ", …; see glovebox runs" : ""}`,
  );
}
