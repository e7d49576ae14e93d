import { afterAll, beforeAll } from "vitest";
import { findEndpoint } from "../../../src/sandbox/backends/docker/engine/endpoint.js";
import { Engine } from "../../../src/sandbox/backends/docker/engine/engine.js";
import type { ContainerSetup, ContainerSpec, TaskSetup } from "../../../src/tasks/types.js";
import { createSandboxManager, type ManagerOptions, type SandboxManager, type TaskEvent } from "../../../src/tasks.js";
import { describeUnless } from "../describe-unless.js";
import { SET_UP_LIMIT } from "../run/set-up-limit.js";
import { createScratch, type Scratch } from "../scratch.js";
import { BUSYBOX, useEngine, whyNoDocker } from "./engine.js";

/** Runs tests with an engine, or says why they are not run. */
export function describeTasks(name: string, images: readonly string[], tests: (place: TaskPlace) => void): void {
  describeUnless(whyNoDocker(...images), name, {}, () => {
    let scratch: Scratch | undefined;
    const place: TaskPlace = {
      get path() {
        return scratch?.path ?? "";
      },
      manager: createRecordingManager,
    };
    beforeAll(async () => {
      scratch = createScratch();
      await useEngine(...images);
    }, SET_UP_LIMIT);
    afterAll(() => scratch?.remove());
    tests(place);
  });
}

/** Where tests of tasks happen. */
export interface TaskPlace {
  /** A scratch directory. */
  readonly path: string;
  manager(opts?: ManagerOptions): SandboxManager & { readonly events: TaskEvent[] };
}

function createRecordingManager(opts: ManagerOptions = {}): SandboxManager & { readonly events: TaskEvent[] } {
  const events: TaskEvent[] = [];
  return Object.assign(createSandboxManager({ onEvent: (event) => void events.push(event), ...opts }), { events });
}

/** A container on the small image. */
export function box(name: string, spec: Partial<ContainerSpec> = {}): ContainerSetup {
  return { name, spec: { imageSpec: { type: "pull", tag: BUSYBOX }, ...spec } };
}

/** A task with an agent and these services. */
export function taskOf(
  taskId: string,
  services: readonly ContainerSetup[] = [],
  agent: Partial<ContainerSpec> = {},
): TaskSetup {
  return {
    taskId,
    agentContainer: box("agent", agent),
    serviceContainers: Object.fromEntries(services.map((service) => [service.name, service])),
  };
}

/** What a batch has on the engine now. */
export async function batchCensus(batchId: string): Promise<string[]> {
  const engine = new Engine(findEndpoint());
  try {
    const query = { all: true, filters: { label: [`glovebox.batch=${batchId}`] } };
    const containers = await engine.call<{ Names: string[] }[]>("GET", "/containers/json", { query });
    const networks = await engine.call<{ Name: string }[]>("GET", "/networks", { query });
    const images = await engine.call<{ Id: string }[]>("GET", "/images/json", { query });
    const { Volumes } = await engine.call<{ Volumes: { Name: string }[] | null }>("GET", "/volumes", { query });
    return [
      ...containers.map(({ Names }) => `container ${Names[0]}`),
      ...networks.map(({ Name }) => `network ${Name}`),
      ...images.map(({ Id }) => `image ${Id}`),
      ...(Volumes ?? []).map(({ Name }) => `volume ${Name}`),
    ];
  } finally {
    engine.close();
  }
}

/** Asks the engine itself. */
export async function askEngine<T>(
  method: string,
  path: string,
  query: Record<string, string | boolean | object> = {},
): Promise<T> {
  const engine = new Engine(findEndpoint());
  try {
    return await engine.call<T>(method, path, { query });
  } finally {
    engine.close();
  }
}
