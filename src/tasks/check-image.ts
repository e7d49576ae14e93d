import { SandboxError } from "../../contracts/errors.js";
import * as is from "../util/schema.js";
import { type Fields, invalidArgument, type Schema } from "../util/schema.js";
import type { BuildImageSpec, BuildStage, ImageSpec, MultiStageBuildImageSpec, PullImageSpec } from "./types.js";

/** The name of an image. */
export const tag: Schema<string> = is.imageName("the name of an image, such as registry:5000/name:tag");

const builtTag = is.and(tag, (value, name) => {
  if (value.includes("@")) throw invalidArgument(name, "a tag to give the image, not a digest", value);
});

const beneath = is.and(is.path, (value, name) => {
  if (!value.startsWith("/") && !value.split("/").includes("..")) return;
  throw new SandboxError("path_confinement", `${name} "${value}" is outside of the context`);
});

const built: Fields<Omit<BuildImageSpec, "type">> = {
  tag: is.required(builtTag, "a value"),
  contextPath: is.required(is.noted(is.path, { description: "Relative to the file." }), "a value"),
  dockerfilePath: is.noted(beneath, { description: "Relative to the context.", default: "Dockerfile" }),
  buildArgs: is.env,
};

const stages: Schema<readonly BuildStage[]> = is.list(
  is.object<BuildStage>({
    ...built,
    parentTag: is.noted(tag, { description: "Passed as the build argument BASE_IMAGE." }),
    cacheKey: is.noted(is.text, { description: "Builds anew when it is another one." }),
  }),
  { minItems: 1 },
  { minItems: "at least one stage" },
);

/** An image that can be pulled or built, as far as its description shows. */
export const imageSpec: Schema<ImageSpec> = is.choice(
  "type",
  "an object with a type",
  is.object<PullImageSpec>({ type: is.required(is.oneOf("pull")), tag: is.required(tag, "a value") }),
  is.object<BuildImageSpec>({ type: is.required(is.oneOf("build")), ...built }),
  is.and(
    is.object<MultiStageBuildImageSpec>({
      type: is.required(is.oneOf("multi-stage")),
      stages: is.required(stages, "a value"),
      finalTag: is.required(builtTag, "a value"),
    }),
    checkChain,
  ),
);

function checkChain({ stages, finalTag }: MultiStageBuildImageSpec, name: string): void {
  const tags = new Map<string, BuildStage>();
  for (const stage of stages) {
    if (tags.has(stage.tag)) {
      throw new SandboxError("invalid_argument", `${name}.stages builds the image "${stage.tag}" twice`);
    }
    tags.set(stage.tag, stage);
  }
  if (!tags.has(finalTag)) {
    throw new SandboxError("invalid_argument", `${name}.finalTag "${finalTag}" is the tag of no stage`, {
      hint: `stages: ${[...tags.keys()].join(", ") || "none"}`,
    });
  }
}
