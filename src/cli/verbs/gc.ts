import { gcRuns, removeRun } from "../../harness.js";
import { parseDuration, UsageError } from "../commands.js";
import { findRunId } from "../find-id.js";
import type { Invocation } from "../invocation.js";
import { removeEach } from "../remove-each.js";

/** `glovebox gc`. */
export async function run(invocation: Invocation): Promise<number> {
  const { operands, flags, screen, interruption } = invocation;
  const olderThan = parseDuration("--older-than", flags.text("older-than") ?? "168h");
  const dryRun = flags.has("dry-run");
  if (operands.length > 0) {
    if (dryRun || flags.has("older-than"))
      throw new UsageError("--dry-run and --older-than don't go with named runs", "name the runs without these flags");
    const removed = await removeEach(
      await Promise.all(operands.map(findRunId)),
      invocation,
      removeRun,
      (runId) => `removed ${runId}`,
    );
    if (flags.has("json")) await screen.printJson({ removed, left: [], dryRun });
    return 0;
  }
  const report = await screen.during("looking at old runs", () =>
    gcRuns({ olderThan, dryRun, signal: interruption.signal }),
  );
  if (flags.has("json")) await screen.printJson({ ...report, dryRun });
  else {
    const verb = dryRun ? "would remove" : "removed";
    const lines = [
      ...report.removed.map((id) => `${verb} ${id}`),
      `${report.removed.length} ${dryRun ? "to remove" : "removed"}, ${report.left.length} left`,
    ];
    await screen.print(`${lines.join("\n")}\n`);
  }
  return 0;
}
