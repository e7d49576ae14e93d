import type { EngineImage } from "../../contracts/container-engine.js";
import { SandboxError } from "../../contracts/errors.js";
import type { Limits } from "../../contracts/types.js";
import { hostnameOf } from "./check-setup.js";
import { containerName, networkName } from "./names.js";
import type { ContainerSetup, TaskSetup, WaitFor } from "./types.js";

/** What a container is going to be, down to its name. */
export interface MemberPlan {
  /** The key of a service; undefined for the agent's container. */
  readonly service: string | undefined;
  /** The engine's name for it, and the setup's. */
  readonly name: string;
  readonly container: string;
  /** The image as it was built, whose settings hold for all copies of the container. */
  readonly image: EngineImage;
  /** What the container is made from: the image, or the commit of another container. */
  readonly from: string;
  readonly hostname: string;
  readonly env: Readonly<Record<string, string>>;
  readonly user: string;
  readonly limits: Omit<Limits, "disk">;
  /** What it runs by itself. */
  readonly command: readonly string[] | undefined;
  readonly waitFor: WaitFor | undefined;
}

/** What a task is going to be. */
export interface TaskPlan {
  readonly taskId: string;
  readonly executionId: string;
  /** The agent's first. */
  readonly containers: readonly MemberPlan[];
  readonly network: { readonly label: string; readonly name: string; readonly internal: boolean } | undefined;
}

/** Plans a task whose images are there. */
export function planTask(
  batchId: string,
  executionId: string,
  setup: TaskSetup,
  images: (container: ContainerSetup) => EngineImage,
  networkEnabled: boolean,
): TaskPlan {
  const { taskId, agentContainer, serviceContainers = {}, networkConfig } = setup;
  const toPlan = (container: ContainerSetup, service: string | undefined): MemberPlan =>
    planContainer(containerName(batchId, executionId, container.name, taskId), container, service, images(container));
  const services = Object.entries(serviceContainers);
  const containers = [
    toPlan(agentContainer, undefined),
    ...services.map(([service, container]) => toPlan(container, service)),
  ];
  // Alone and without a way out, a container has nobody to talk to.
  const isNeeded = services.length > 0 || networkEnabled || networkConfig !== undefined;
  const label = networkConfig?.name ?? "network";
  const network = isNeeded
    ? {
        label,
        name: networkName(batchId, executionId, label),
        internal: networkConfig?.internal ?? !networkEnabled,
      }
    : undefined;
  return { taskId, executionId, containers, network };
}

function planContainer(
  name: string,
  setup: ContainerSetup,
  service: string | undefined,
  image: EngineImage,
): MemberPlan {
  const { spec } = setup;
  const command = commandOf(setup, service !== undefined, image);
  checkReadiness(setup, command, image);
  return {
    service,
    name,
    container: setup.name,
    image,
    from: image.id,
    hostname: hostnameOf(setup),
    env: { ...image.env, ...spec.environment },
    user: spec.user ?? image.user,
    limits: spec.limits ?? {},
    command,
    waitFor: spec.waitFor,
  };
}

/** As Docker has it: the entrypoint of the image, then what was given, else its own arguments. A text is for a shell. */
function commandOf(
  { spec: { command } }: ContainerSetup,
  isService: boolean,
  image: EngineImage,
): readonly string[] | undefined {
  if (!isService && command === undefined) return undefined;
  const given = typeof command === "string" ? ["/bin/sh", "-c", command] : command;
  const argv = isService ? [...image.entrypoint, ...(given ?? image.cmd)] : (given ?? []);
  return argv.length === 0 ? undefined : argv;
}

function checkReadiness(
  { name, spec: { waitFor } }: ContainerSetup,
  command: readonly string[] | undefined,
  image: EngineImage,
): void {
  if (waitFor?.log !== undefined && command === undefined) {
    throw new SandboxError("invalid_argument", `waitFor.log of "${name}": it runs no command whose log could be read`);
  }
  if (waitFor?.health === true && image.healthcheck === undefined) {
    throw new SandboxError("invalid_argument", `waitFor.health of "${name}": its image has no HEALTHCHECK`);
  }
}

/** The plan of a copy, made from other images. */
export function planClone(
  batchId: string,
  { network, ...plan }: TaskPlan,
  from: (container: MemberPlan) => string,
): TaskPlan {
  const { taskId, executionId } = plan;
  return {
    taskId,
    executionId,
    containers: plan.containers.map((container) => ({
      ...container,
      name: containerName(batchId, executionId, container.container, taskId),
      from: from(container),
    })),
    network: network && { ...network, name: networkName(batchId, executionId, network.label) },
  };
}
