export { createRef, lastNumber } from "./fast-commit/create-ref.js";
export { writeLooseObjects } from "./fast-commit/loose-object.js";
export { type FastCommit, makeFastCommit, trustHead } from "./fast-commit/make-fast-commit.js";
export { countPackObjects } from "./fast-commit/pack-header.js";
