import type { EngineImage } from "../../../../../contracts/container-engine.js";
import { toImageDefaults, type WrittenImageConfig } from "../../image-defaults.js";
import type { Engine } from "../engine/engine.js";
import { EngineError } from "../engine/engine-error.js";

/** An image of a Docker engine. */
export interface ImageConfig extends EngineImage {
  readonly labels: Readonly<Record<string, string>>;
  readonly layers: number;
}

interface InspectedImage {
  Id: string;
  Config?: (WrittenImageConfig & { Labels?: Record<string, string> | null }) | null;
  RootFS?: { Layers?: string[] | null };
}

/** Finds an image by name or id; undefined when the engine doesn't have it. */
export async function findImage(engine: Engine, name: string, signal?: AbortSignal): Promise<ImageConfig | undefined> {
  try {
    const found = await engine.call<InspectedImage>("GET", `/images/${name}/json`, { signal });
    return toImageConfig(found);
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) return undefined;
    throw error;
  }
}

function toImageConfig({ Id, Config, RootFS }: InspectedImage): ImageConfig {
  return {
    id: Id,
    ...toImageDefaults(Config ?? {}),
    labels: Config?.Labels ?? {},
    layers: RootFS?.Layers?.length ?? 0,
  };
}
