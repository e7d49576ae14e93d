export type { RunGuest } from "./fast-commit/gather-changes.js";
export { writeLooseObjects } from "./fast-commit/loose-object.js";
export { makeFastCommit, type FastCommit, trustHead } from "./fast-commit/make-fast-commit.js";
