export {
  type LiveTree,
  needsRepository,
  type RunGuest,
  type SandboxGit,
  type SandboxHead,
  scratchPath,
  sweepScratch,
  type TreeLook,
} from "./live-tree/live-tree.js";
export {
  fillMirror,
  forkMirror,
  type MirrorPlan,
  mirroredTree,
  mirrorResources,
  planMirror,
} from "./live-tree/mirror.js";
export type { MirroredDriver } from "./live-tree/mirror-git.js";
export { mustRunInside, runInside } from "./live-tree/run-inside.js";
export { advanceSandboxHead, readSandboxHead, setSandboxBranch, setSandboxHead } from "./live-tree/sandbox-head.js";
