import { backgroundAndAbortCases } from "./cases/background-and-abort.js";
import { deadlineCases } from "./cases/deadlines.js";
import { directoryCases } from "./cases/directories.js";
import { egressCases } from "./cases/egress.js";
import { errorCases } from "./cases/errors.js";
import { execArgvCases } from "./cases/exec-argv.js";
import { execCheckCases } from "./cases/exec-check.js";
import { execCombinedCases } from "./cases/exec-combined.js";
import { execCwdCases } from "./cases/exec-cwd.js";
import { execEnvCases } from "./cases/exec-env.js";
import { execExitCases } from "./cases/exec-exit.js";
import { execOutputCases } from "./cases/exec-output.js";
import { execStdinCases } from "./cases/exec-stdin.js";
import { fileKindCases } from "./cases/file-kinds.js";
import { fileStreamCases } from "./cases/file-streams.js";
import { fileTreeCases } from "./cases/file-trees.js";
import { fileCases } from "./cases/files.js";
import { keepCases } from "./cases/keep.js";
import { lifecycleCases } from "./cases/lifecycle.js";
import { lifetimeCases } from "./cases/lifetime.js";
import { limitCases } from "./cases/limits.js";
import { linkCases } from "./cases/links.js";
import { nameCases } from "./cases/names.js";
import { networkCases } from "./cases/network.js";
import { pathCases } from "./cases/paths.js";
import { portCases } from "./cases/ports.js";
import { processTableCases } from "./cases/process-table.js";
import { ptyCases } from "./cases/pty.js";
import { restrictionCases } from "./cases/restrictions.js";
import { sandboxPathCases } from "./cases/sandbox-paths.js";
import { snapshotCases } from "./cases/snapshots.js";
import { spawnCases } from "./cases/spawn.js";
import { workDirCases } from "./cases/work-dir.js";
import type { ConformanceCase } from "./types.js";

/** Every promise of the contract that the kit can check, in the order in which it runs them. */
export const conformanceCases: readonly ConformanceCase[] = [
  ...sharing(execArgvCases),
  ...sharing(execEnvCases),
  ...sharing(execCwdCases),
  ...sharing(execStdinCases),
  ...sharing(execExitCases),
  ...sharing(execOutputCases),
  ...sharing(execCombinedCases),
  ...sharing(execCheckCases),
  ...sharing(deadlineCases),
  ...sharing(backgroundAndAbortCases),
  ...sharing(spawnCases),
  ...sharing(processTableCases),
  ...sharing(ptyCases),
  ...sharing(fileCases),
  ...sharing(fileKindCases),
  ...sharing(fileTreeCases),
  ...sharing(fileStreamCases),
  ...sharing(pathCases),
  ...sharing(linkCases),
  ...sharing(sandboxPathCases),
  ...sharing(directoryCases),
  ...sharing(lifecycleCases),
  ...sharing(keepCases),
  ...sharing(nameCases),
  ...sharing(lifetimeCases),
  ...sharing(errorCases),
  ...sharing(limitCases),
  ...sharing(networkCases),
  ...sharing(egressCases),
  ...sharing(portCases),
  ...sharing(restrictionCases),
  ...sharing(snapshotCases),
  ...sharing(workDirCases),
];

/** Marks the cases that neither need a special sandbox nor close it. */
function sharing(cases: readonly ConformanceCase[]): ConformanceCase[] {
  return cases.map((one) => ({ ...one, shares: !one.options && one.closes !== true && one.exclusive !== true }));
}
