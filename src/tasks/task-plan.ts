import type { EngineImage } from "../../contracts/container-engine.js";
import { SandboxError } from "../../contracts/errors.js";
import type { Limits } from "../../contracts/types.js";
import { hostnameOf } from "./check-setup.js";
import { containerName, networkName } from "./names.js";
import type { ContainerSetup, TaskSetup, WaitFor } from "./types.js";

/** Everything about a container that will be started. */
export interface MemberPlan {
  /** The key of a service; undefined for the agent's container. */
  readonly service: string | undefined;
  /** Its name on the engine, and its name in the setup. */
  readonly name: string;
  readonly container: string;
  /** The image of the setup. Its settings apply to clones too. */
  readonly image: EngineImage;
  /** What the container starts from: the id of the image, or the name of a commit. */
  readonly from: string;
  readonly hostname: string;
  readonly env: Readonly<Record<string, string>>;
  readonly user: string;
  readonly limits: Omit<Limits, "disk">;
  /** Its own command. */
  readonly command: readonly string[] | undefined;
  readonly waitFor: WaitFor | undefined;
}

/** Everything about a task that will be set up. */
export interface TaskPlan {
  readonly taskId: string;
  readonly executionId: string;
  /** The agent's first. */
  readonly containers: readonly MemberPlan[];
  readonly network: { readonly label: string; readonly name: string; readonly internal: boolean } | undefined;
}

/** Plans a task whose images are ready. */
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
  // A single container without access to other machines has nothing to reach.
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

/** Services get the image's entrypoint, then the given command or the image's own. A string goes to a shell. */
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
    throw new SandboxError("invalid_argument", `waitFor.log of "${name}": it runs no command, so it has no log`);
  }
  if (waitFor?.health === true && image.healthcheck === undefined) {
    throw new SandboxError("invalid_argument", `waitFor.health of "${name}": its image has no HEALTHCHECK`);
  }
}

/** Plans a clone, which starts from commits. */
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
