export { type BlueprintFault, blueprintError, showFault } from "./blueprint/blueprint-error.js";
export { blueprint, defineBlueprint, isBlueprint } from "./blueprint/define.js";
export {
  type BlueprintOrigin,
  type FindOptions,
  type FoundBlueprint,
  findBlueprint,
  listBlueprints,
} from "./blueprint/find.js";
export {
  assertConfined,
  codeHashOf,
  isConfined,
  isDocument,
  type LoadOptions,
  loadBlueprint,
  loadFound,
  readFound,
  trustNote,
} from "./blueprint/load.js";
export { nodeThatNeedsSpec } from "./blueprint/needs-spec.js";
export { readBlueprint } from "./blueprint/read.js";
export { BLUEPRINT_SCHEMA } from "./blueprint/schema.js";
export {
  agent,
  agentic,
  command,
  commit,
  deterministic,
  gate,
  preflight,
  validate,
} from "./nodes.js";
