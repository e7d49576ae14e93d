import type { BlueprintSpec, EngineOptions, RunContext, RunEventBody, RunOutcome } from "../../src/harness/types.js";
import { defineBlueprint, runBlueprint } from "../../src/harness.js";
import type { Sandbox } from "../../src/sandbox/types.js";

/** What a run of the engine did. */
export interface EngineRun {
  outcome: RunOutcome;
  events: RunEventBody[];
  context: RunContext;
}

/** Runs a blueprint in a sandbox and keeps its events. */
export async function runInSandbox(
  sandbox: Sandbox,
  spec: BlueprintSpec,
  more: Partial<Omit<EngineOptions, "sandbox" | "context">> & { context?: Partial<RunContext> } = {},
): Promise<EngineRun> {
  const events: RunEventBody[] = [];
  const { context: given, ...options } = more;
  const context: RunContext = {
    runId: "0a1b2c3d",
    blueprint: spec.name,
    workDir: sandbox.workDir,
    intent: "mend it",
    repo: ".",
    branch: "harness/0a1b2c3d/x",
    push: false,
    sandboxType: sandbox.backend,
    inputs: {},
    env: {},
    results: {},
    ...given,
  };
  const onEvent = (event: RunEventBody): void => void events.push(event);
  const outcome = await runBlueprint(defineBlueprint(spec), { onEvent, sandbox, context, ...options });
  return { outcome, events, context };
}

/** The events of one type. */
export function only<T extends RunEventBody["type"]>(
  events: readonly RunEventBody[],
  type: T,
): Extract<RunEventBody, { type: T }>[] {
  return events.filter((event): event is Extract<RunEventBody, { type: T }> => event.type === type);
}
