import type { AgentSpec, Blueprint, BlueprintSpec, CommandSpec, CommitSpec, GateSpec } from "../types.js";
import { defineBlueprint } from "./define.js";

/** Another name of `defineBlueprint`. */
export function blueprint(spec: BlueprintSpec): Blueprint {
  return defineBlueprint(spec);
}

/** A program, a script or a function. */
export function command(spec: Omit<CommandSpec, "kind">): CommandSpec {
  return { ...spec, kind: "command" };
}

/** A command that looks whether the run can begin. */
export function preflight(spec: Omit<CommandSpec, "kind">): CommandSpec {
  return { ...spec, kind: "preflight" };
}

/** Another name of `command`. */
export function deterministic(spec: Omit<CommandSpec, "kind">): CommandSpec {
  return { ...spec, kind: "deterministic" };
}

/** A coding agent. */
export function agent(spec: Omit<AgentSpec, "kind">): AgentSpec {
  return { ...spec, kind: "agent" };
}

/** Another name of `agent`. */
export function agentic(spec: Omit<AgentSpec, "kind">): AgentSpec {
  return { ...spec, kind: "agentic" };
}

/** Checks, and an agent that repairs what is red. */
export function gate(spec: Omit<GateSpec, "kind">): GateSpec {
  return { ...spec, kind: "gate" };
}

/** Another name of `gate`. */
export function validate(spec: Omit<GateSpec, "kind">): GateSpec {
  return { ...spec, kind: "validate" };
}

/** A commit of all that was changed. */
export function commit(spec: Omit<CommitSpec, "kind">): CommitSpec {
  return { ...spec, kind: "commit" };
}
