/** What the layers above need on the host: the files, locks, owners and git that sandboxes use, too. */
export { writeFileAtomic } from "../machine/atomic-file.js";
export { type ConformanceSummary, lastConformance, saveConformance } from "../machine/conformance-record.js";
export { privateSubdirectory } from "../machine/home.js";
export { withLock } from "../machine/lock.js";
export { currentOwner, isOwnerAlive, type Owner } from "../machine/owner.js";
export { temporaryDirectory } from "../machine/temporary-directory.js";
export {
  entryText,
  mergeEntries,
  namedSecret,
  networkHint,
  networkRule,
  networkSchema,
  parseAllow,
  parseEntryText,
  parseRules,
  saysUnresolved,
} from "./egress.js";
export {
  checkedOutAt,
  enclosingRepository,
  findGit,
  findRepository,
  findSource,
  findStart,
  type Repository,
  readRepositorySettings,
  repositoryGit,
  resolveCommit,
  runRepositoryGit,
  trustedPath,
  uncommittedFiles,
} from "./git.js";
export { discardLive, underPolicy, underTaskPolicy } from "./lifecycle.js";
export { conformanceOf } from "./probe.js";
export { policiesInForce } from "./settings/policies.js";
export { loadUserConfig, userConfigPath } from "./settings/user-config.js";
