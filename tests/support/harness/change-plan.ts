import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Changes the plan of a run as only its user can: in the directory of the run and in the user's own home. In one of the
 * two alone, it would be refused.
 */
export function changePlan(home: string, directory: string, runId: string, edit: (text: string) => string): void {
  for (const path of [join(directory, "run.json"), join(home, "runs", runId, "run.json")]) {
    writeFileSync(path, edit(readFileSync(path, "utf8")));
  }
}
