export { type AgentChoice, agentNames } from "./harness/agents.js";
export * from "./harness/blueprint.js";
export { runBlueprint } from "./harness/engine.js";
export { resolveInputs } from "./harness/inputs.js";
export {
  type AgentNeed,
  type BlueprintNeeds,
  needsOf,
  resolveSecrets,
  type SecretNeed,
  sandboxOptionsOf,
} from "./harness/needs.js";
export * from "./harness/types.js";
