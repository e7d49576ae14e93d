import { SandboxError } from "../../contracts/errors.js";
import { invalidArgument } from "../util/checks.js";
import { IMAGE_REFERENCE, MAX_IMAGE_REFERENCE } from "../util/image-reference.js";
import {
  and,
  choice,
  env,
  type Fields,
  list,
  matching,
  noted,
  object,
  oneOf,
  path,
  required,
  type Schema,
  text,
} from "../util/schema.js";
import type { BuildImageSpec, BuildStage, ImageSpec, MultiStageBuildImageSpec, PullImageSpec } from "./types.js";

const tag = matching(new RegExp(`^${IMAGE_REFERENCE}$`), "the name of an image, such as registry:5000/name:tag", {
  maxLength: MAX_IMAGE_REFERENCE,
});

const builtTag = and(tag, (value, name) => {
  if (value.includes("@")) throw invalidArgument(name, "a tag to give the image, not a digest", value);
});

const beneath = and(path, (value, name) => {
  if (!value.startsWith("/") && !value.split("/").includes("..")) return;
  throw new SandboxError("path_confinement", `${name} "${value}" is outside of the context`);
});

const built: Fields<Omit<BuildImageSpec, "type">> = {
  tag: required(builtTag, "a value"),
  contextPath: required(noted(path, { description: "Relative to the file." }), "a value"),
  dockerfilePath: noted(beneath, { description: "Relative to the context.", default: "Dockerfile" }),
  buildArgs: env,
};

const stages: Schema<readonly BuildStage[]> = list(
  object<BuildStage>({
    ...built,
    parentTag: noted(tag, { description: "Passed as the build argument BASE_IMAGE." }),
    cacheKey: noted(text, { description: "Builds anew when it is another one." }),
  }),
  { minItems: 1 },
  { minItems: "at least one stage" },
);

/** An image that can be pulled or built, as far as its description tells. */
export const imageSpec: Schema<ImageSpec> = choice(
  "type",
  "an object with a type",
  object<PullImageSpec>({ type: required(oneOf("pull")), tag: required(tag, "a value") }),
  object<BuildImageSpec>({ type: required(oneOf("build")), ...built }),
  and(
    object<MultiStageBuildImageSpec>({
      type: required(oneOf("multi-stage")),
      stages: required(stages, "a value"),
      finalTag: required(builtTag, "a value"),
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
