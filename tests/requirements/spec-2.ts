import type { Requirement } from "./requirement.js";

const DOCUMENTED: Readonly<Record<string, string>> = {
  "two-levels": "A batch prepares images; a task lives in it and is gone when its scope ends",
  "default-command": "Containers without a command stay alive for exec",
  exec: "`exec` takes text or arguments, stdin, cwd, env, user, timeout and a shell",
  "parallel-tasks": "Tasks run in parallel within a batch",
  pull: "Images that are not present are pulled when the batch is set up",
  build: "Images are built from a Dockerfile of any name, with arguments, and progress is told",
  "multi-stage": "Stages are built on their parents, the final one is run, and all of them stay",
  incremental: "Only changed stages are built anew",
  "built-images-stay": "Built images are not removed with the batch",
  "single-flight": "Image building has no races: each image is made once",
  "custom-manager": "Managers of other kinds can be registered and are used like the built-in one",
  dns: "Containers reach each other by host name",
  "own-network": "Each task gets a network of its own",
  "parallel-creation": "Service containers start concurrently",
  internal: "Without the network enabled, a task's network is internal",
  clone: "`cloneSandboxState` copies all containers and the network",
  naming: "Names are `{batch}-{execution}-{container}-{task}-{uuid}`",
  tracking: "Containers and networks are tracked by execution and batch",
  "auto-cleanup": "Clones and temporary images are removed with the task",
  "cleanup-never-throws": "Errors of a clean-up are reported, never thrown",
  "cleanup-own-only": "A clean-up affects only the containers of its task",
};

/** What the document about batches and tasks promises. */
export const SPEC_2: readonly Requirement[] = [
  ...Object.entries(DOCUMENTED).map(([name, sentence]) => ({ id: `S2-DOC-${name}`, source: "spec 2", sentence })),
  {
    id: "S2-TEST-parallel-creation",
    source: "spec 2, tests",
    sentence: "test_parallel_creation: three at one time have unique ids",
  },
];
