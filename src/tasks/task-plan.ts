import type { ContainerRequest, EngineImage } from "../../contracts/container-engine.js";
import { SandboxError } from "../../contracts/errors.js";
import { hostnameOf } from "./check-setup.js";
import { tagOf } from "./image-plan.js";
import { containerName, networkName } from "./names.js";
import type { ContainerSetup, TaskSetup, WaitFor } from "./types.js";

/** Everything about a container that will be started. */
export interface MemberPlan {
  /** The key of a service; undefined for the agent's container. */
  readonly service: string | undefined;
  /** Its name in the setup. */
  readonly container: string;
  /** The image of the setup. Its settings apply to clones too. */
  readonly image: EngineImage;
  readonly request: Omit<ContainerRequest, "labels" | "network" | "onWarning">;
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
  images: ReadonlyMap<string, EngineImage>,
  networkEnabled: boolean,
): TaskPlan {
  const { taskId, agentContainer, serviceContainers = {}, networkConfig } = setup;
  const toPlan = (container: ContainerSetup, service: string | undefined): MemberPlan => {
    const image = images.get(tagOf(container.spec.imageSpec));
    if (image === undefined) throw new SandboxError("internal", `The image of "${container.name}" was not prepared`);
    return planContainer(containerName(batchId, executionId, container.name, taskId), container, service, image);
  };
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
    container: setup.name,
    image,
    request: {
      name,
      image: image.id,
      hostname: hostnameOf(setup),
      user: spec.user ?? image.user,
      workingDir: image.workingDir,
      env: { ...image.env, ...spec.environment },
      limits: spec.limits ?? {},
      isService: service !== undefined,
    },
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
  imageOf: (container: MemberPlan) => string,
): TaskPlan {
  const { taskId, executionId } = plan;
  return {
    taskId,
    executionId,
    containers: plan.containers.map((container) => ({
      ...container,
      request: {
        ...container.request,
        name: containerName(batchId, executionId, container.container, taskId),
        image: imageOf(container),
      },
    })),
    network: network && { ...network, name: networkName(batchId, executionId, network.label) },
  };
}
