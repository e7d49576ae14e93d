/** What the layers above need of the host: the same files, locks, owners and git that sandboxes are kept with. */
export { writeFileAtomic } from "../machine/atomic-file.js";
export { type ConformanceNote, lastConformance, noteConformance } from "../machine/conformance-record.js";
export { privateSubdirectory } from "../machine/home.js";
export { withLock } from "../machine/lock.js";
export { currentOwner, isOwnerAlive, type Owner } from "../machine/owner.js";
export { temporaryDirectory } from "../machine/temporary-directory.js";
export {
  checkedOutAt,
  enclosingRepository,
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
export { conformanceOf } from "./probe.js";
