import type { VerbModule } from "./invocation.js";

/** Where each verb is. Loaded when it is used, so that the help needs no backend. */
const VERBS: Readonly<Record<string, () => Promise<VerbModule>>> = {
  exec: () => import("./exec.js"),
  shell: () => import("./shell.js"),
  ls: () => import("./ls.js"),
  rm: () => import("./rm.js"),
  snapshot: () => import("./snapshot.js"),
  snapshots: () => import("./snapshots.js"),
  restore: () => import("./restore.js"),
  fork: () => import("./fork.js"),
  diff: () => import("./diff.js"),
  export: () => import("./export.js"),
  import: () => import("./import.js"),
  push: () => import("./push.js"),
  blueprints: () => import("./blueprints.js"),
  blueprint: () => import("./blueprint.js"),
  init: () => import("./init.js"),
  task: () => import("./task.js"),
  run: () => import("./run.js"),
  resume: () => import("./resume.js"),
  runs: () => import("./runs.js"),
  show: () => import("./show.js"),
  logs: () => import("./logs.js"),
  apply: () => import("./apply.js"),
  stop: () => import("./stop.js"),
  gc: () => import("./gc.js"),
  reap: () => import("./reap.js"),
  doctor: () => import("./doctor.js"),
  completion: () => import("./completion.js"),
  version: () => import("./version.js"),
  help: () => import("./help.js"),
};

/** Loads the module of a verb. */
export async function loadVerb(name: string): Promise<VerbModule> {
  const load = VERBS[name];
  if (load === undefined) throw new Error(`the verb ${name} has no module`);
  return await load();
}
