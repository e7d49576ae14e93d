import type { ContainerEngine } from "../../../../contracts/container-engine.js";
import { type EndpointChoice, findEndpoint } from "./engine/endpoint.js";
import { Engine } from "./engine/engine.js";
import { createNetwork } from "./engine/network.js";
import { ensureImage } from "./image/ensure-image.js";
import { ownerLabels } from "./labels.js";
import { removeContainer } from "./remove-container.js";
import { removeImage, removeNetwork } from "./resources.js";
import { sweepEngine } from "./sweep.js";
import { startTaskContainer } from "./task-container.js";

/** Opens a Docker engine for batches and tasks, with connections of its own. */
export function openContainerEngine(choice?: EndpointChoice): ContainerEngine {
  const engine = new Engine(findEndpoint(choice));
  const layersOf = new Map<string, number>();
  return {
    name: "docker",
    async ensureImage(request, opts) {
      const image = await ensureImage(engine, request, opts);
      layersOf.set(image.id, image.layers);
      return image;
    },
    createNetwork: ({ labels, ...request }, signal) =>
      createNetwork(engine, { ...request, labels: { ...ownerLabels(), ...labels } }, signal),
    startContainer: (request, signal) => startTaskContainer(engine, request, layersOf, signal),
    removeContainer: (name) => removeContainer(engine, name),
    removeNetwork: (name) => removeNetwork(engine, name),
    async removeImage(name) {
      await removeImage(engine, name);
      layersOf.delete(name);
    },
    sweep: () => sweepEngine({}, engine),
    close: () => engine.close(),
  };
}
