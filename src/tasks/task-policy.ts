import { underTaskPolicy } from "../sandbox/host.js";
import type { ContainerSetup, TaskSetup } from "./types.js";

/** A task under the policies in force: its containers get the limits that they set. `permission_denied` if it breaks one. */
export async function underPolicy(engine: string, setup: TaskSetup, networkEnabled: boolean): Promise<TaskSetup> {
  const isInternal = setup.networkConfig?.internal ?? !networkEnabled;
  const bounded = async (container: ContainerSetup): Promise<ContainerSetup> => {
    const { imageSpec, limits = {} } = container.spec;
    // What a Dockerfile starts from is not known before it is built.
    const images = [imageSpec.type === "pull" ? imageSpec.tag : undefined];
    const network = isInternal ? "none" : "full";
    const { disk: _, ...own } = await underTaskPolicy({ backend: engine, images, network, limits });
    return { ...container, spec: { ...container.spec, limits: own } };
  };
  const services = Object.entries(setup.serviceContainers ?? {});
  const boundedServices: [string, ContainerSetup][] = [];
  for (const [name, service] of services) boundedServices.push([name, await bounded(service)]);
  return {
    ...setup,
    agentContainer: await bounded(setup.agentContainer),
    ...(services.length > 0 && { serviceContainers: Object.fromEntries(boundedServices) }),
  };
}
