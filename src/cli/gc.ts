import { gcRuns } from "../harness.js";
import type { Invocation } from "./invocation.js";
import { parseDuration } from "./values.js";

/** `glovebox gc`. */
export async function run({ flags, screen }: Invocation): Promise<number> {
  const olderThan = parseDuration("--older-than", flags.text("older-than") ?? "168h");
  const dryRun = flags.has("dry-run");
  const report = await screen.during("looking at old runs", () => gcRuns({ olderThan, dryRun }));
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
