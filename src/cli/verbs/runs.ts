import { homedir } from "node:os";
import { formatDuration, listRuns } from "../../harness.js";
import { isWithin } from "../../machine/system-folders.js";
import { toInertLine } from "../../util/inert-text.js";
import type { Invocation } from "../invocation.js";
import { formatTable } from "../terminal.js";

/** `glovebox runs`. */
export async function run({ flags, screen }: Invocation): Promise<number> {
  const runs = await listRuns();
  if (flags.has("json")) await screen.printJson(runs);
  else if (flags.has("quiet")) await screen.print(runs.map(({ runId }) => `${runId}\n`).join(""));
  else if (runs.length === 0) await screen.printNote("there are no runs");
  else {
    const { bold, good, bad, warn } = screen.style;
    const paint = (state: string): string =>
      state === "success" ? good(state) : state === "running" ? warn(state) : bad(state);
    const rows = runs.map((each) => [
      each.runId,
      paint(each.state),
      toInertLine(each.blueprint ?? ""),
      each.startedAt ?? "",
      each.totalDurationMs ? formatDuration(each.totalDurationMs) : "",
      toInertLine(shortRepo(each.repo ?? "")),
      toInertLine((each.intent ?? "").slice(0, 50)),
    ]);
    await screen.print(
      formatTable([["RUN", "STATE", "BLUEPRINT", "STARTED", "TOOK", "REPOSITORY", "INTENT"].map(bold), ...rows]),
    );
  }
  return 0;
}

/** The repository as one knows it: a path below your home with ~, a GitHub URL as owner/name. */
function shortRepo(repo: string): string {
  const home = homedir();
  if (home !== "/" && isWithin(repo, home)) return `~${repo.slice(home.length)}`;
  return repo.replace(/^https:\/\/github\.com\//, "").replace(/\.git$/, "");
}
