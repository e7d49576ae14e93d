export { explainGitFailure } from "./host/explain-failure.js";
export { assertOutside, findGit, trustedPath } from "./host/find-git.js";
export {
  gitError,
  gitIn,
  type HostGitOptions,
  type HostGitResult,
  hostGit,
  inStore,
  NO_CONFIG,
  NO_FETCH,
  type RunGit,
  runHostGit,
  wasGitKilled,
} from "./host/host-git.js";
