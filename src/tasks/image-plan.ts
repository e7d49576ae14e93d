import { isDeepStrictEqual } from "node:util";
import { SandboxError } from "../../contracts/errors.js";
import type { BuildStage, ImageSpec, TaskSetup } from "./types.js";

/** One image to prepare: pulled, or built after its parent. */
export type ImageStep = {
  readonly tag: string;
  readonly build?: BuildStage;
  readonly parent?: ImageStep;
  /** Whether a container runs its own command, or waits for its HEALTHCHECK. */
  readonly isRun: boolean;
};

/** An image as a container of a task uses it. */
export interface ImageUse {
  readonly spec: ImageSpec;
  readonly isRun: boolean;
}

/** The tag of the image that a container runs. */
export function tagOf(spec: ImageSpec): string {
  return withTag(spec.type === "multi-stage" ? spec.finalTag : spec.tag);
}

/** Adds the tag that an engine would add to a name without one. */
export function withTag(name: string): string {
  return /:[^/]+$/.test(name) ? name : `${name}:latest`;
}

/** All images of these tasks, of agents and of services. */
export function usesOf(tasks: readonly TaskSetup[]): ImageUse[] {
  return tasks.flatMap(({ agentContainer, serviceContainers = {} }) => [
    { spec: agentContainer.spec.imageSpec, isRun: agentContainer.spec.waitFor?.health === true },
    ...Object.values(serviceContainers).map(({ spec }) => ({ spec: spec.imageSpec, isRun: true })),
  ]);
}

/**
 * Orders images: each one once, parents before their children. Refuses one tag with two descriptions, and images that are
 * each other's parents.
 */
export function planImages(uses: readonly ImageUse[]): ImageStep[] {
  const builds = collectBuilds(uses.map(({ spec }) => spec));
  const run = new Set(uses.filter(({ isRun }) => isRun).map(({ spec }) => tagOf(spec)));
  const steps = new Map<string, ImageStep>();
  const visit = (name: string, path: readonly string[]): ImageStep => {
    const tag = withTag(name);
    const known = steps.get(tag);
    if (known !== undefined) return known;
    if (path.includes(tag)) {
      const cycle = [...path.slice(path.indexOf(tag)), tag].join(" -> ");
      throw new SandboxError("invalid_argument", `These images are each other's parents: ${cycle}`);
    }
    const build = builds.get(tag);
    const parentTag = build?.parentTag;
    const parent = parentTag === undefined ? undefined : visit(parentTag, [...path, tag]);
    const step: ImageStep = { tag, isRun: run.has(tag), ...(build && { build }), ...(parent && { parent }) };
    steps.set(tag, step);
    return step;
  };
  for (const tag of builds.keys()) visit(tag, []);
  for (const { spec } of uses) visit(tagOf(spec), []);
  return [...steps.values()];
}

function collectBuilds(specs: readonly ImageSpec[]): Map<string, BuildStage> {
  const builds = new Map<string, BuildStage>();
  for (const spec of specs) {
    for (const stage of stagesOf(spec)) {
      const tag = withTag(stage.tag);
      const known = builds.get(tag);
      if (known !== undefined && !isDeepStrictEqual(known, stage)) {
        throw new SandboxError("conflict", `The image "${stage.tag}" has two different descriptions`, {
          retryable: false,
          hint: "give one of them another tag",
        });
      }
      builds.set(tag, stage);
    }
  }
  return builds;
}

function stagesOf(spec: ImageSpec): readonly BuildStage[] {
  if (spec.type === "pull") return [];
  if (spec.type === "multi-stage") return spec.stages;
  const { type: _, ...stage } = spec;
  return [stage];
}
