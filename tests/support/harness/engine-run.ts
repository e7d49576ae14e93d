import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import type {
  BlueprintSpec,
  EngineOptions,
  NodeSpec,
  RunContext,
  RunEventBody,
  RunOutcome,
} from "../../../src/harness/types.js";
import { defineBlueprint, runBlueprint } from "../../../src/harness.js";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { openSandbox } from "../../../src/sandbox.js";
import { createRepository, createScratch, type Scratch } from "../scratch.js";

/** What the tests of a file run blueprints in. */
export interface EnginePlace {
  scratch: Scratch;
  repo: string;
  sandbox: Sandbox;
}

/** A local sandbox on a repository for all tests of a file; there from `beforeAll` to `afterAll`. */
export function useSandbox(options: (path: string) => SandboxOptions = () => ({})): EnginePlace {
  const place = {} as EnginePlace;
  beforeAll(async () => {
    place.scratch = createScratch();
    place.repo = createRepository(join(place.scratch.path, "repo"));
    const more = options(place.scratch.path);
    place.sandbox = await openSandbox({ backend: "local", repo: place.repo, branch: "work", ...more });
  });
  afterAll(async () => {
    await place.sandbox?.teardown();
    place.scratch.remove();
  });
  return place;
}

/** A blueprint of these nodes. */
export function of(...nodes: NodeSpec[]): BlueprintSpec {
  return { name: "test", nodes };
}

/** What became of each node. */
export function told({ nodes }: { nodes: readonly { id: string; status: string }[] }): string[] {
  return nodes.map(({ id, status }) => `${id} ${status}`);
}

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
