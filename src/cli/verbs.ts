import { useCompileCache } from "../machine/compile-cache.js";
import type { VerbModule } from "./invocation.js";

/** The module of each verb, loaded when it is used, so that the help loads no backend. */
const VERBS: Readonly<Record<string, () => Promise<VerbModule>>> = {
  exec: () => import("./verbs/exec.js"),
  shell: () => import("./verbs/shell.js"),
  ls: () => import("./verbs/ls.js"),
  net: () => import("./verbs/net.js"),
  mcp: () => import("./verbs/mcp.js"),
  rm: () => import("./verbs/rm.js"),
  snapshot: () => import("./verbs/snapshot.js"),
  snapshots: () => import("./verbs/snapshots.js"),
  restore: () => import("./verbs/restore.js"),
  fork: () => import("./verbs/fork.js"),
  diff: () => import("./verbs/diff.js"),
  export: () => import("./verbs/export.js"),
  import: () => import("./verbs/import.js"),
  push: () => import("./verbs/push.js"),
  batch: () => import("./verbs/batch.js"),
  task: () => import("./verbs/task.js"),
  blueprints: () => import("./verbs/blueprints.js"),
  blueprint: () => import("./verbs/blueprint.js"),
  init: () => import("./verbs/init.js"),
  run: () => import("./verbs/run.js"),
  resume: () => import("./verbs/resume.js"),
  runs: () => import("./verbs/runs.js"),
  show: () => import("./verbs/show.js"),
  logs: () => import("./verbs/logs.js"),
  apply: () => import("./verbs/apply.js"),
  stop: () => import("./verbs/stop.js"),
  gc: () => import("./verbs/gc.js"),
  reap: () => import("./verbs/reap.js"),
  doctor: () => import("./verbs/doctor.js"),
  config: () => import("./verbs/config.js"),
  prepare: () => import("./verbs/prepare.js"),
  completion: () => import("./verbs/completion.js"),
  version: () => import("./verbs/version.js"),
  help: () => import("./verbs/help.js"),
};

/** Verbs that load next to nothing, and should not make the home. */
const SMALL = new Set(["version", "help", "completion"]);

/** Loads the module of a verb. */
export async function loadVerb(name: string): Promise<VerbModule> {
  const load = VERBS[name];
  if (load === undefined) throw new Error(`the verb ${name} has no module`);
  if (!SMALL.has(name)) useCompileCache();
  return await load();
}
