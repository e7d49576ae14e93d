import type { EngineImage } from "../../../../../contracts/container-engine.js";
import type { Engine } from "../engine/engine.js";
import { EngineError } from "../engine/engine-error.js";

/** An image of a Docker engine. */
export interface ImageConfig extends EngineImage {
  readonly labels: Readonly<Record<string, string>>;
  readonly layers: number;
}

interface InspectedImage {
  Id: string;
  Config?: {
    Env?: string[] | null;
    Entrypoint?: string[] | string | null;
    Cmd?: string[] | string | null;
    WorkingDir?: string;
    User?: string;
    Healthcheck?: { Test?: string[]; Timeout?: number } | null;
    Volumes?: Record<string, unknown> | null;
    Labels?: Record<string, string> | null;
  } | null;
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
  // `["CMD", …]`, `["CMD-SHELL", script]` or `["NONE"]`.
  const [kind, ...test] = Config?.Healthcheck?.Test ?? [];
  const timeout = Math.ceil((Config?.Healthcheck?.Timeout ?? 0) / 1_000_000);
  return {
    id: Id,
    env: Object.fromEntries((Config?.Env ?? []).map(toEntry)),
    entrypoint: toWords(Config?.Entrypoint),
    cmd: toWords(Config?.Cmd),
    workingDir: Config?.WorkingDir || "/",
    user: Config?.User ?? "",
    ...(test.length > 0 && {
      healthcheck: {
        argv: kind === "CMD-SHELL" ? ["/bin/sh", "-c", ...test] : test,
        ...(timeout > 0 && { timeout }),
      },
    }),
    volumes: Object.keys(Config?.Volumes ?? {}),
    labels: Config?.Labels ?? {},
    layers: RootFS?.Layers?.length ?? 0,
  };
}

function toEntry(line: string): [string, string] {
  const border = line.indexOf("=");
  return border === -1 ? [line, ""] : [line.slice(0, border), line.slice(border + 1)];
}

function toWords(value: string[] | string | null | undefined): string[] {
  return typeof value === "string" ? ["/bin/sh", "-c", value] : (value ?? []);
}
