export { controlGroupPaths, makeControlGroups, oomKills } from "./limits/control-group.js";
export {
  type DiskImage,
  makeImage,
  mountImage,
  mountsOf,
  planImage,
  removeMount,
  unmountImage,
} from "./limits/disk-image.js";
export { checkLimits, enforceableLimits, processLimit } from "./limits/enforceable.js";
export { DEFAULT_PIDS } from "./limits/process-count.js";
export { removeCgroup } from "./limits/remove-cgroup.js";
export { scopeCommand, scopeOf } from "./limits/user-scope.js";
export { reasonsForLimits, refuseLimits, whyRefused } from "./limits/why-refused.js";
